//! Since when a thread has been without the GVL.

use super::*;

#[test]
fn a_wait_has_begun_when_the_gvl_was_given_up_whoever_looks_in_between() {
    let mut accounting = Accounting::new(1, Mode::Wall, &pace(), 0, 1);
    let began = |it: &Accounting| it.off_gvl_began().map(|it| (it.at_ns, it.or_before));
    assert_eq!(began(&accounting), None);
    accounting.begin_off_gvl(10);
    let _ = accounting.flush(40, 0, None);
    // An interrupted sleep.
    accounting.suspended(50);
    assert_eq!(began(&accounting), Some((10, true)));
    let _ = accounting.resumed(60, 55, || 0);
    assert_eq!(began(&accounting), None);
    accounting.suspended(70);
    let _ = accounting.flush(90, 0, None);
    assert_eq!(began(&accounting), Some((70, false)));
}
