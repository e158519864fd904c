use std::future::Future;
use std::net::Ipv4Addr;

use super::*;

const REQUEST: &[u8] = b"GET /no-store HTTP/1.1\r\nHost: bench.test\r\n\r\n";
const CAPACITY: Capacity = Capacity {
    at_once: 2,
    takes: Duration::from_millis(20),
};

/// Runs `script` next to the data port of an origin, on an address that was free a moment ago.
fn with_origin<F: Future<Output = ()>>(
    capacity: Capacity,
    script: impl FnOnce(Rc<Congested>, SocketAddr) -> F,
) {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    crate::start::on_one_thread(async {
        let origin = Congested::new(capacity);
        tokio::select! {
            ended = serve_data(Rc::clone(&origin), address) => panic!("{ended:?}"),
            () = async {
                tokio::task::yield_now().await;
                script(Rc::clone(&origin), address).await;
            } => Ok(()),
        }
    })
    .unwrap();
}

async fn ask(address: SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(REQUEST).await.unwrap();
    socket
}

async fn until(claim: impl Fn() -> bool) {
    while !claim() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn the_time_grows_with_the_square_of_the_load() {
    for (in_flight, millis) in [(0, 20), (1, 20), (2, 20), (4, 80), (20, 2000)] {
        assert_eq!(
            CAPACITY.span(in_flight),
            Duration::from_millis(millis),
            "{in_flight}"
        );
    }
}

#[test]
fn an_answer_comes_after_its_time_and_frees_its_room() {
    with_origin(CAPACITY, |origin, address| async move {
        let start = Instant::now();
        let mut socket = ask(address).await;
        let mut answer = [0; 1];
        socket.read_exact(&mut answer).await.unwrap();
        assert!(start.elapsed() >= CAPACITY.takes);
        assert_eq!(origin.in_flight(), 0);
    });
}

#[test]
fn work_goes_on_after_the_asker_has_left() {
    let endless = Capacity {
        at_once: 1,
        takes: Duration::from_secs(3600),
    };
    with_origin(endless, |origin, address| async move {
        let mut socket = ask(address).await;
        until(|| origin.in_flight() == 1).await;
        socket.shutdown().await.unwrap();
        // The origin has closed its side, so it has seen that nobody waits.
        assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(origin.in_flight(), 1);
    });
}

#[test]
fn silence_takes_up_no_room_and_its_askers_are_cut_off_by_healing() {
    with_origin(CAPACITY, |origin, address| async move {
        origin.hang(true);
        let mut socket = ask(address).await;
        until(|| !origin.record.borrow().arrived.is_empty()).await;
        assert_eq!(origin.in_flight(), 0);
        origin.hang(false);
        assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(origin.record.borrow().arrived, Vec::<u32>::new());
    });
}
