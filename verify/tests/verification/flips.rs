use crate::support::{published, run, verify};

#[test]
#[ignore = "measurement"]
fn sizes() {
    run(|| async {
        let case = published().await.copy();
        for key in case.keys(|_| true) {
            eprintln!("{} {key}", case.read(&key).len());
        }
        let start = std::time::Instant::now();
        for _ in 0..10 {
            verify(&case.path(), false).await;
        }
        eprintln!("shallow {:?}", start.elapsed() / 10);
        let start = std::time::Instant::now();
        for _ in 0..10 {
            verify(&case.path(), true).await;
        }
        eprintln!("deep {:?}", start.elapsed() / 10);
    });
}
