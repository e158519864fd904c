vcl 4.1;

# The listener "pass" passes everything through; "cache" is a cache that serves stale within its grace and
# fetches in the background; "capped" is the same cache with 20 connections to the origin at most.
# The time limits are those of the other gateways here. By default an origin may take a minute.
backend origin {
    .host = "127.0.0.1";
    .port = "21000";
    .connect_timeout = 0.3s;
    .first_byte_timeout = 0.3s;
    .between_bytes_timeout = 0.3s;
}

backend capped {
    .host = "127.0.0.1";
    .port = "21000";
    .connect_timeout = 0.3s;
    .first_byte_timeout = 0.3s;
    .between_bytes_timeout = 0.3s;
    .max_connections = 20;
}

sub vcl_recv {
    if (local.socket == "capped") {
        set req.backend_hint = capped;
    }
    if (local.socket == "pass") {
        # What is not looked up is not waited for either: by default, requests for one key queue up until
        # the first answer has shown that it may not be kept.
        return (pass);
    }
    return (hash);
}

sub vcl_backend_response {
    # Stale for as long as the others may: an hour.
    set beresp.grace = 1h;
    if (beresp.status >= 500 && bereq.is_bgfetch) {
        # Otherwise the error would take the place of the stale answer.
        return (abandon);
    }
}

sub vcl_backend_error {
    if (bereq.is_bgfetch) {
        return (abandon);
    }
}
