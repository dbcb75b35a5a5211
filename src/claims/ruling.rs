//! A ruling: whether what was measured supports a claim, contradicts it, or does neither.

/// The result of a measurement for a claim or a part of it, before seeds are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruling {
    /// It supports the claim.
    Holds,
    /// It contradicts the claim.
    Fails,
    /// It does neither.
    Between,
    /// The setting could not have shown the effect.
    Hidden,
}

impl Ruling {
    /// The ruling of a rule with two conditions that exclude each other; undecided if neither is met.
    pub fn of_rule(is_confirmed: bool, is_refuted: bool) -> Self {
        match (is_confirmed, is_refuted) {
            (true, _) => Self::Holds,
            (_, true) => Self::Fails,
            _ => Self::Between,
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
        let holds = all.iter().all(|one| *one == Self::Holds);
        Self::of_rule(holds, fails(&all)).undecided_if(all.is_empty())
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
            Self::Holds | Self::Fails if is_undecided => Self::Between,
            ruling => ruling,
        }
    }

    /// Undecided if the measurement is too narrow to confirm the claim, though it can refute it, or if it confirms the
    /// claim only within a limit that the claim does not name.
    pub fn undecided_if_holds(self, is_narrow: bool) -> Self {
        self.undecided_if(is_narrow && self == Self::Holds)
    }

    /// Undecided if the measurement is too narrow to refute the claim, though it can confirm it.
    pub fn undecided_if_fails(self, is_narrow: bool) -> Self {
        self.undecided_if(is_narrow && self == Self::Fails)
    }

    /// `Hidden` if the setting could not have shown the effect.
    pub fn hidden_if(self, is_hidden: bool) -> Self {
        if is_hidden { Self::Hidden } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::Ruling::{self, Between, Fails, Hidden, Holds};

    #[test]
    fn settings_and_parts_combine() {
        for (rulings, every, both) in [
            (vec![], Between, Between),
            (vec![Holds, Holds], Holds, Holds),
            (vec![Fails, Fails], Fails, Fails),
            (vec![Holds, Fails], Between, Fails),
            (vec![Fails, Between], Between, Fails),
            (vec![Holds, Between], Between, Between),
            (vec![Between, Between], Between, Between),
        ] {
            assert_eq!(Ruling::every(rulings.clone()), every, "{rulings:?}");
            assert_eq!(Ruling::both(rulings.clone()), both, "{rulings:?}");
        }
    }

    #[test]
    fn limits_only_weaken_a_ruling() {
        type Limit = fn(Ruling, bool) -> Ruling;
        let limits: [(Limit, [Ruling; 4]); 4] = [
            (Ruling::undecided_if, [Between, Between, Between, Hidden]),
            (Ruling::undecided_if_holds, [Between, Fails, Between, Hidden]),
            (Ruling::undecided_if_fails, [Holds, Between, Between, Hidden]),
            (Ruling::hidden_if, [Hidden; 4]),
        ];
        for (limit, limited) in limits {
            for (ruling, limited) in [Holds, Fails, Between, Hidden].into_iter().zip(limited) {
                assert_eq!((limit(ruling, false), limit(ruling, true)), (ruling, limited));
            }
        }
        assert_eq!([Holds, Fails].map(Ruling::not), [Fails, Holds]);
    }
}
