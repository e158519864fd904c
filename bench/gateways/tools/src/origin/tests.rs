use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};

use super::*;

const REQUEST: &[u8] = b"GET /no-store HTTP/1.1\r\nHost: bench.test\r\n\r\n";

/// Runs `script` next to both ports of an origin, on addresses that were free a moment ago.
fn with_origin<F: Future<Output = ()>>(script: impl FnOnce(Rc<Origin>, SocketAddr, SocketAddr) -> F) {
    let [data, control] = [(); 2].map(|()| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let addresses = [&data, &control].map(|listener| listener.local_addr().unwrap());
    drop((data, control));
    crate::start::on_one_thread(async {
        let origin = Origin::new();
        tokio::select! {
            ended = serve_data(Rc::clone(&origin), addresses[0]) => panic!("{ended:?}"),
            ended = serve_control(Rc::clone(&origin), addresses[1]) => panic!("{ended:?}"),
            () = async {
                origin.set_mode(Mode::Normal).await;
                script(Rc::clone(&origin), addresses[0], addresses[1]).await;
            } => Ok(()),
        }
    })
    .unwrap();
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

async fn answer_len(socket: &mut TcpStream) -> usize {
    let mut input = BytesMut::new();
    loop {
        if let Some(head) = head_len(&input)
            && input.len() >= head + answer::BODY_LEN
        {
            return input.len() - head;
        }
        assert_ne!(socket.read_buf(&mut input).await.unwrap(), 0, "closed early");
    }
}

#[test]
fn pipelined_requests_are_each_answered_and_counted() {
    with_origin(|origin, data, _| async move {
        let mut socket = connect(data).await;
        socket.write_all(&REQUEST.repeat(2)).await.unwrap();
        let mut received = vec![0; 2 * answer::BODY_LEN];
        socket.read_exact(&mut received).await.unwrap();
        assert_eq!(origin.counters(), (2, 1));
    });
}

#[test]
fn a_refusing_origin_closes_open_connections_and_takes_no_new_ones() {
    with_origin(|origin, data, _| async move {
        let mut socket = connect(data).await;
        socket.write_all(REQUEST).await.unwrap();
        answer_len(&mut socket).await;
        origin.set_mode(Mode::Refuse).await;
        assert_eq!(socket.read(&mut [0]).await.unwrap_or(0), 0);
        let refused = TcpStream::connect(data).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn an_origin_that_refused_listens_on_the_same_port_again() {
    with_origin(|origin, data, _| async move {
        origin.set_mode(Mode::Refuse).await;
        origin.set_mode(Mode::Normal).await;
        let mut socket = connect(data).await;
        socket.write_all(REQUEST).await.unwrap();
        assert_eq!(answer_len(&mut socket).await, answer::BODY_LEN);
    });
}

#[test]
fn a_hanging_origin_answers_once_it_is_healed() {
    with_origin(|origin, data, _| async move {
        origin.set_mode(Mode::Hang).await;
        let mut socket = connect(data).await;
        socket.write_all(REQUEST).await.unwrap();
        while origin.counters().0 == 0 {
            tokio::task::yield_now().await;
        }
        let silent = socket.try_read(&mut [0]).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
        origin.set_mode(Mode::Normal).await;
        assert_eq!(answer_len(&mut socket).await, answer::BODY_LEN);
    });
}

#[test]
fn a_method_other_than_get_closes_the_connection() {
    with_origin(|_, data, _| async move {
        let mut socket = connect(data).await;
        socket
            .write_all(b"POST /no-store HTTP/1.1\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(socket.read(&mut [0]).await.unwrap_or(0), 0);
    });
}

#[test]
fn the_control_port_steers_and_counts() {
    with_origin(|origin, _, control| async move {
        for (path, wanted) in [
            ("/mode/hang", r#"{"mode":"hang","requests":0,"connections":0}"#),
            (
                "/mode/refuse",
                r#"{"mode":"refuse","requests":0,"connections":0}"#,
            ),
            ("/mode/slow", "want /counters or /mode/{normal,refuse,hang}"),
            ("/counters", r#"{"mode":"refuse","requests":0,"connections":0}"#),
        ] {
            let mut socket = connect(control).await;
            let request = format!("GET {path} HTTP/1.1\r\nHost: bench.test\r\n\r\n");
            socket.write_all(request.as_bytes()).await.unwrap();
            let mut seen = String::new();
            socket.read_to_string(&mut seen).await.unwrap();
            assert!(seen.ends_with(&format!("{wanted}\n")), "{path}: {seen}");
        }
        assert_eq!(origin.mode(), Mode::Refuse);
    });
}
