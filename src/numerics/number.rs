//! float32 and float64, with the constants for the exponential of vectors.

/// float32 or float64.
pub(crate) trait Number:
    Copy
    + Default
    + PartialOrd
    + Send
    + Sync
    + std::fmt::Debug
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::AddAssign
    + 'static
{
    const NEGATIVE_INFINITY: Self;
    /// The smallest x whose exponential is a normal number.
    const LOWEST_EXPONENT: Self;
    /// Exponentials of at most this become 0, and it is subtracted from all others, which does not change those that matter
    /// beside 1. A gradient times a smaller exponential can be subnormal, and products with such entries take several times
    /// longer.
    const FLUSHED: Option<Self>;
    /// 1/ln 2.
    const LOG2_E: Self;
    /// ln 2 in two parts. The first is so short that its products with any exponent are
    /// exact.
    const LN_2: [Self; 2];
    /// Adding it to a number of moderate size leaves the nearest integer in the low bits.
    const ROUND: Self;
    /// 1/k! for k falling to 0: the Taylor polynomial of eʳ, whose remainder for |r| ≤ ½ ln 2 is
    /// below a tenth of the last bit.
    const INVERSE_FACTORIALS: &'static [Self];

    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Number for f32 {
    const NEGATIVE_INFINITY: Self = f32::NEG_INFINITY;
    const LOWEST_EXPONENT: Self = -87.3;
    // 2⁻⁹⁰
    const FLUSHED: Option<Self> = Some(8.077_936e-28);
    const LOG2_E: Self = std::f32::consts::LOG2_E;
    const LN_2: [Self; 2] = [0.693_359_4, -2.121_944_4e-4];
    const ROUND: Self = 12_582_912.0;
    const INVERSE_FACTORIALS: &'static [Self] =
        &[1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Number for f64 {
    const NEGATIVE_INFINITY: Self = f64::NEG_INFINITY;
    const LOWEST_EXPONENT: Self = -708.0;
    const FLUSHED: Option<Self> = None;
    const LOG2_E: Self = std::f64::consts::LOG2_E;
    const LN_2: [Self; 2] = [0.693_147_180_369_123_8, 1.908_214_929_270_587_7e-10];
    const ROUND: Self = 6_755_399_441_055_744.0;
    const INVERSE_FACTORIALS: &'static [Self] = &[
        1.0 / 6_227_020_800.0,
        1.0 / 479_001_600.0,
        1.0 / 39_916_800.0,
        1.0 / 3_628_800.0,
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];

    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
}
