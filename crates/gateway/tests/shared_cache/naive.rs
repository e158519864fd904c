//! Two proxies that are wrong on purpose: one keeps nothing, the other the first answer to each script for ever.
//! A script that both of them pass has asked nothing, so the suite plays all scripts against both.
//! They are no example: neither reads a single field.

use std::{collections::HashMap, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::{net::TcpListener, net::TcpStream, task::JoinSet};

use crate::{
    origin::unlatin,
    wire::{Head, Wire},
};

/// What a wrong proxy keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keeps {
    Nothing,
    Everything,
}

type Kept = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// Starts one in front of an origin and returns its address. It lives as long as the runtime.
pub(crate) async fn start(keeps: Keeps, origin: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("a bound port");
    tokio::spawn(async move {
        let kept = Kept::default();
        let mut open = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.spawn(serve(Wire::new(stream), keeps, origin, Arc::clone(&kept)));
            while open.try_join_next().is_some() {}
        }
    });
    address
}

/// Answers one request and closes.
async fn serve(mut client: Wire, keeps: Keeps, origin: SocketAddr, kept: Kept) -> Option<()> {
    let head = client.head().await?;
    let body = client.request_body(&head).await;
    let mut words = head.line.split(' ');
    let method = words.next()?.to_owned();
    let script = words.next()?.split(['/', '?', ';']).nth(1)?.to_owned();
    let known = kept
        .lock()
        .get(&script)
        .cloned()
        .filter(|_| keeps == Keeps::Everything);
    let answer = match known {
        Some(answer) => answer,
        None => forward(&head, &body, &method, origin).await?,
    };
    kept.lock().insert(script, answer.clone());
    client.send(&answer).await.then_some(())
}

async fn forward(head: &Head, body: &[u8], method: &str, origin: SocketAddr) -> Option<Vec<u8>> {
    let mut wire = Wire::new(TcpStream::connect(origin).await.ok()?);
    let mut request = written(head);
    request.extend(body);
    wire.send(&request).await;
    let mut answer = wire.head().await?;
    let bodiless = method == "HEAD"
        || [" 204 ", " 304 "]
            .iter()
            .any(|status| answer.line.contains(status));
    let (body, _) = wire.answer_body(&answer, bodiless).await;
    if !bodiless {
        answer
            .fields
            .retain(|(name, _)| name != "transfer-encoding" && name != "content-length");
        answer
            .fields
            .push(("content-length".to_owned(), body.len().to_string()));
    }
    answer
        .fields
        .retain(|(name, _)| name != "age" && name != "connection");
    answer.fields.push(("age".to_owned(), "0".to_owned()));
    answer.fields.push(("connection".to_owned(), "close".to_owned()));
    let mut bytes = written(&answer);
    bytes.extend(body);
    Some(bytes)
}

fn written(head: &Head) -> Vec<u8> {
    let mut text = format!("{}\r\n", head.line);
    for (name, value) in &head.fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    unlatin(&(text + "\r\n"))
}
