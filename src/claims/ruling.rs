//! A ruling: whether what was measured supports a claim, contradicts it, or does neither, and why.

/// The result of a measurement for a claim or a part of it, before seeds are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// It supports the claim.
    Holds,
    /// It contradicts the claim.
    Fails,
    /// It does neither.
    Between(Reason),
    /// The setting could not have shown the effect.
    Hidden,
}

/// Why a claim is only qualified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A part of it holds: in some settings, for some of its parts, or within limits that the claim does not name.
    PartHolds,
    /// The rows are too few, too scattered or too narrow in scope to decide.
    Undecided,
}

impl Ruling {
    const UNDECIDED: Self = Self::Between(Reason::Undecided);

    /// The ruling of a rule with two conditions that exclude each other; undecided if neither is met.
    pub fn of_rule(is_confirmed: bool, is_refuted: bool) -> Self {
        match (is_confirmed, is_refuted) {
            (true, _) => Self::Holds,
            (_, true) => Self::Fails,
            _ => Self::UNDECIDED,
        }
    }

    /// Combines settings: the claim fails only if it fails in every one.
    pub fn every(settings: impl IntoIterator<Item = Self>) -> Self {
        Self::over(settings, |settings| settings.iter().all(|one| *one == Self::Fails))
    }

    /// Combines the parts of one claim: it fails if any of them fails.
    pub fn both(parts: impl IntoIterator<Item = Self>) -> Self {
        Self::over(parts, |parts| parts.contains(&Self::Fails))
    }

    fn over(all: impl IntoIterator<Item = Self>, fails: impl Fn(&[Self]) -> bool) -> Self {
        let all: Vec<Self> = all.into_iter().collect();
        if all.is_empty() {
            Self::UNDECIDED
        } else if all.iter().all(|one| *one == Self::Holds) {
            Self::Holds
        } else if fails(&all) {
            Self::Fails
        } else if all.contains(&Self::Holds) {
            Self::Between(Reason::PartHolds)
        } else {
            Self::UNDECIDED
        }
    }

    /// The ruling on the negated claim.
    pub fn not(self) -> Self {
        match self {
            Self::Holds => Self::Fails,
            Self::Fails => Self::Holds,
            other => other,
        }
    }

    /// Undecided if `is_undecided`, that is if the measurement can support or contradict the claim but not decide it.
    pub fn undecided_if(self, is_undecided: bool) -> Self {
        match self {
            Self::Holds | Self::Fails if is_undecided => Self::UNDECIDED,
            ruling => ruling,
        }
    }

    /// Undecided if the measurement is too narrow to confirm the claim, though it can refute it.
    pub fn undecided_if_holds(self, is_narrow: bool) -> Self {
        self.undecided_if(is_narrow && self == Self::Holds)
    }

    /// Undecided if the measurement is too narrow to refute the claim, though it can confirm it.
    pub fn undecided_if_fails(self, is_narrow: bool) -> Self {
        self.undecided_if(is_narrow && self == Self::Fails)
    }

    /// Holds only in part if a limit applies that the claim does not name.
    pub fn in_part_if(self, is_limited: bool) -> Self {
        match self {
            Self::Holds if is_limited => Self::Between(Reason::PartHolds),
            ruling => ruling,
        }
    }

    /// `Hidden` if the setting could not have shown the effect.
    pub fn hidden_if(self, is_hidden: bool) -> Self {
        if is_hidden { Self::Hidden } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::Reason::{PartHolds, Undecided};
    use super::Ruling::{self, Between, Fails, Hidden, Holds};

    #[test]
    fn settings_and_parts_combine() {
        let open = Between(Undecided);
        for (rulings, every, both) in [
            (vec![], open, open),
            (vec![Holds, Holds], Holds, Holds),
            (vec![Fails, Fails], Fails, Fails),
            (vec![Holds, Fails], Between(PartHolds), Fails),
            (vec![Fails, open], open, Fails),
            (vec![Holds, open], Between(PartHolds), Between(PartHolds)),
            (vec![open, open], open, open),
        ] {
            assert_eq!(Ruling::every(rulings.clone()), every, "{rulings:?}");
            assert_eq!(Ruling::both(rulings.clone()), both, "{rulings:?}");
        }
    }

    #[test]
    fn limits_only_weaken_a_ruling() {
        for ruling in [Holds, Fails, Between(PartHolds), Hidden] {
            assert_eq!(ruling.undecided_if(false), ruling);
            assert_eq!(ruling.in_part_if(false), ruling);
            assert_eq!(ruling.hidden_if(false), ruling);
            assert_eq!(ruling.hidden_if(true), Hidden);
        }
        assert_eq!(Holds.undecided_if(true), Between(Undecided));
        assert_eq!(Fails.undecided_if(true), Between(Undecided));
        assert_eq!(Between(PartHolds).undecided_if(true), Between(PartHolds));
        assert_eq!(Holds.undecided_if_holds(true), Between(Undecided));
        assert_eq!(Fails.undecided_if_holds(true), Fails);
        assert_eq!(Fails.undecided_if_fails(true), Between(Undecided));
        assert_eq!(Holds.undecided_if_fails(true), Holds);
        assert_eq!(Holds.in_part_if(true), Between(PartHolds));
        assert_eq!(Fails.in_part_if(true), Fails);
        assert_eq!(Ruling::of_rule(true, false).not(), Fails);
    }
}
