//! Faults for the checkers of memory: each of them first has to find one of these. As a program it has
//! the fault that its argument names; as a library, the one that `plant` is called with.

use std::hint::black_box;

fn main() {
    let fault = std::env::args().nth(1);
    plant(fault.and_then(|it| it.parse().ok()).unwrap_or_default());
}

/// 1: reads freed memory. 2: loses 1,000 blocks. 3: goes by a byte that nobody has written. Else: none.
#[unsafe(no_mangle)]
pub extern "C" fn plant(fault: u32) {
    match fault {
        1 => {
            let block = Box::into_raw(Box::new([black_box(7_u8); 64]));
            // SAFETY: none. That is the fault.
            unsafe {
                drop(Box::from_raw(block));
                if black_box((*block)[20]) == 7 {
                    println!("freed");
                }
            }
        }
        2 => (0..1_000_u64).for_each(|it| {
            black_box(Box::leak(Box::new([it; 8])));
        }),
        3 => {
            let block = Box::<[u8; 64]>::new_uninit();
            // SAFETY: none. That is the fault.
            let block = unsafe { black_box(block).assume_init() };
            if block[20] == 7 {
                println!("unwritten");
            }
        }
        _ => {}
    }
}
