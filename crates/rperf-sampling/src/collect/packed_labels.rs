//! What goes with the number of a label set in a sample, so that no table grows by it: the op that the
//! fiber was in, and the class of its request. The profile has the op as a frame, and the class as a label.

use rperf_model::{LabelSetId, LatencyClass};
use rperf_vm::OpNumber;

/// The bits of a label set's number. There are 2^16 sets at most, and none.
const NUMBER_BITS: u32 = 17;

/// The bits of a class, and one more value to tell that there is none.
pub(super) const CLASS_BITS: u32 = 3;

const CLASS_AT: u32 = NUMBER_BITS + OpNumber::BITS;

const _: () = assert!(CLASS_AT + CLASS_BITS == u32::BITS);

/// The parts of what a sample has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedLabels {
    /// The number of the label set.
    pub number: LabelSetId,
    /// The op.
    pub op: OpNumber,
    /// The class of its request, if it is known.
    pub class: Option<LatencyClass>,
}

/// The number of a label set with an op.
#[inline]
pub fn with_op(number: LabelSetId, op: OpNumber) -> LabelSetId {
    LabelSetId(number.0 | u32::from(op.0 & OpNumber::MOST) << NUMBER_BITS)
}

/// The number of a label set, which may have an op, with a class.
pub(super) fn with_class(packed: LabelSetId, class: LatencyClass) -> LabelSetId {
    LabelSetId(packed.0 | (class as u32 + 1) << CLASS_AT)
}

impl PackedLabels {
    /// The parts of `packed`.
    pub fn of(packed: LabelSetId) -> Self {
        let class = (packed.0 >> CLASS_AT).checked_sub(1);
        Self {
            number: LabelSetId(packed.0 & ((1 << NUMBER_BITS) - 1)),
            op: OpNumber((packed.0 >> NUMBER_BITS) as u16 & OpNumber::MOST),
            class: class.and_then(|class| LatencyClass::ALL.get(class as usize).copied()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_comes_back_whatever_the_others_are() {
        let classes = LatencyClass::ALL.into_iter().map(Some).chain([None]);
        for class in classes {
            for number in [0, 1, 1 << 16] {
                for op in [0, 1, OpNumber::MOST] {
                    let parts = PackedLabels {
                        number: LabelSetId(number),
                        op: OpNumber(op),
                        class,
                    };
                    let packed = with_op(parts.number, parts.op);
                    let packed = class.map_or(packed, |class| with_class(packed, class));
                    assert_eq!(PackedLabels::of(packed), parts);
                }
            }
        }
    }
}
