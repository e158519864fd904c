//! Decides how a dependency is probed that nobody asks: a GET of the path that the contract names.
//! It exists so that an open dependency closes before the next request comes, and not by making that one wait.
//! It refuses to read the body: the status is the answer, and the connection is given up.

use std::{pin::Pin, sync::Arc};

use evenkeel::Class;
use http::{HeaderValue, Request, Uri, header::HOST};

use super::{
    link::Outgoing,
    seat::{CameTo, Tried},
    upload::Upload,
    upstream::Upstream,
};
use crate::config::{Dependency, HealthProbe, RewriteHost};

/// Returns the work of a probe, to be repeated.
pub(super) fn probe(
    dependency: &Dependency,
    health: &HealthProbe,
    upstream: &Arc<Upstream>,
) -> impl Fn() -> Pin<Box<dyn Future<Output = Class> + Send>> + Send + Sync + use<> {
    let (upstream, target) = (Arc::clone(upstream), Uri::from(health.path.clone()));
    let host = match &dependency.rewrite.host {
        RewriteHost::Given(host) => Some(host.clone()),
        // Nobody asked for another one, so each address is told its own.
        RewriteHost::Keep | RewriteHost::Upstream => None,
    };
    move || {
        let (upstream, target, host) = (Arc::clone(&upstream), target.clone(), host.clone());
        Box::pin(async move {
            let tried = Tried::default();
            match upstream.send(&tried, || get(&target, host.as_ref())).await {
                Ok(mut head) => {
                    head.link.came_to(CameTo::Answered);
                    upstream.classify.of(head.response.status())
                }
                Err(trouble) => trouble.class(),
            }
        })
    }
}

fn get(target: &Uri, host: Option<&HeaderValue>) -> Outgoing {
    let mut request = Request::new(Upload::Empty);
    *request.uri_mut() = target.clone();
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host.clone());
    }
    request
}
