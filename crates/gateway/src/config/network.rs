//! Decides which addresses a text such as `10.0.0.0/8` stands for.
//! It exists because whom to believe about a client's origin is a list of networks.
//! It refuses addresses with bits behind the network, which are a slip more often than a wish.

use std::{fmt, net::IpAddr};

use super::{lints, reader::Fields};

/// A network, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// The most networks of one list.
pub const NETWORKS_MAX: usize = 64;

impl Network {
    /// Reads an address with or without a number of bits.
    ///
    /// # Errors
    /// What is wrong with it, in a few words.
    ///
    /// ```
    /// use evenkeel_gateway::config::Network;
    /// assert!(Network::parse("10.0.0.0/8").unwrap().contains("10.1.2.3".parse().unwrap()));
    /// assert_eq!(Network::parse("10.0.0.1/8").unwrap_err(), "it has bits behind the network");
    /// ```
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| "it is not an IP address")?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => all,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits
                .parse()
                .ok()
                .filter(|bits| *bits <= all)
                .ok_or("it has more bits than an address")?,
            Some(_) => return Err("its bits are not a number"),
        };
        let network = Self { address, bits };
        if network.number(address) << u32::from(bits).min(127) != 0 && bits < all {
            return Err("it has bits behind the network");
        }
        Ok(network)
    }

    /// Tells whether an address is in it. An IPv4 address counts as one however it is written.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let differing = self.number(address) ^ self.number(self.address);
        let behind = if self.bits == 0 {
            0
        } else {
            differing >> (128 - u32::from(self.bits))
        };
        address.is_ipv4() == self.address.is_ipv4() && behind == 0
    }

    /// Returns an address as a number whose highest bit is the address's first.
    fn number(&self, address: IpAddr) -> u128 {
        match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Reads a list of networks.
pub(super) fn read(fields: &mut Fields<'_, '_>, key: &'static str) -> Vec<Network> {
    const EXAMPLE: &str = "[\"10.0.0.0/8\"]";
    let texts = fields.texts(key, EXAMPLE).unwrap_or_default();
    if texts.len() > NETWORKS_MAX {
        fields.problem(
            key,
            &format!("{} networks", texts.len()),
            &format!("at most {NETWORKS_MAX}"),
            "join them to larger ones",
        );
    }
    let mut read = Vec::new();
    for text in texts {
        match Network::parse(&text) {
            Ok(network) if read.contains(&network) => {
                fields.lint(
                    lints::LISTED_TWICE,
                    key,
                    &format!("\"{network}\" twice"),
                    "each once",
                    "remove one",
                );
            }
            Ok(network) => read.push(network),
            Err(why) => fields.problem(
                key,
                &format!("\"{}\": {why}", text.escape_debug()),
                "an IP address, or a network such as 10.0.0.0/8 or fd00::/8",
                &format!("write `{key} = {EXAMPLE}`, say"),
            ),
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_ends_exactly_at_its_last_address() {
        for (network, inside, outside) in [
            (
                "10.0.0.0/8",
                &["10.0.0.0", "10.255.255.255", "::ffff:10.1.1.1"][..],
                &["9.255.255.255", "11.0.0.0", "::a00:1"][..],
            ),
            ("192.0.2.7", &["192.0.2.7"], &["192.0.2.6", "192.0.2.8"]),
            (
                "192.0.2.6/31",
                &["192.0.2.6", "192.0.2.7"],
                &["192.0.2.5", "192.0.2.8"],
            ),
            ("0.0.0.0/0", &["1.2.3.4"], &["::1"]),
            ("::/0", &["::1", "fd00::1"], &["1.2.3.4"]),
            ("fd00::/8", &["fd00::", "fdff::1"], &["fc00::1", "fe00::"]),
            ("::1/128", &["::1"], &["::", "::2"]),
        ] {
            let network = Network::parse(network).unwrap();
            for address in inside {
                assert!(network.contains(address.parse().unwrap()), "{network} {address}");
            }
            for address in outside {
                assert!(!network.contains(address.parse().unwrap()), "{network} {address}");
            }
        }
    }

    #[test]
    fn what_is_no_network_is_told() {
        for text in [
            "",
            "10.0.0.0/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/+8",
            "10.0.0/8",
            "10.0.0.1/8",
            "fd00::1/64",
            "::1/127",
            "a",
        ] {
            assert!(Network::parse(text).is_err(), "{text}");
        }
    }
}
