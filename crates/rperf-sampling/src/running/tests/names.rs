//! The names of threads, as they change and as threads end.

use super::*;

struct Named(usize);

impl VmName for Named {
    fn word(&self) -> usize {
        self.0
    }

    fn text(&self) -> Option<Arc<str>> {
        (self.0 != 0).then(|| format!("name {}", self.0).into())
    }
}

#[test]
fn the_last_name_of_a_thread_counts_to_its_end_and_beyond() {
    let (vm, session) = session();
    let name = |state: &ThreadState, word| session.note_name(vm.gvl(), state, &Named(word));
    let main = thread(&session, MAIN);
    name(main, 5);
    begin_thread(&session, &vm, main, clock::monotonic_ns());
    name(main, 6);
    name(main, 7);
    name(main, 7);
    vm.thread.set(OTHER);
    vm.stacks.borrow_mut().insert(OTHER, vec![(3, 31)]);
    let other = thread(&session, OTHER);
    resumed(&session, &vm, other);
    pass_time();
    session.ticks.tick();
    sample(&session, &vm, other);
    name(other, 8);
    suspended(&session, &vm, other);
    let seqs = [main, other].map(|state| {
        let part = state.gvl_part(vm.gvl()).expect("no borrow is held");
        part.accounting.as_ref().expect("it has one").seq()
    });
    let ended = other.thread;
    flush(&session, &vm, |state| state.thread == ended);
    vm.thread.set(MAIN);
    let (_, snapshot) = sums(&session, &vm);
    let names = seqs.map(|seq| snapshot.texts.thread_names.get(seq));
    assert_eq!(names, [Some("name 7"), Some("name 8")]);
}
