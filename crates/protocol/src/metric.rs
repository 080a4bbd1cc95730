//! What can be counted of a program: declared by the worker, carried by position.

use std::{fmt, ops::Deref};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A figure that a worker gives of every program. Less is better.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name, in one word.
    pub name: String,
    /// What one is counted in, where that is not the metric itself: `bytes`.
    pub unit: String,
    /// One sentence.
    pub description: String,
    /// What it stands for, where others need to know.
    pub role: MetricRole,
}

/// What a metric stands for, whatever the compiler calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricRole {
    /// Nothing that others need to know.
    #[default]
    Plain,
    /// All instructions, whatever they do: how large the program is.
    Size,
    /// Functions.
    Functions,
    /// The primary metric if every call were replaced by a copy of what it calls.
    Expanded,
    /// Arithmetic operations of a run.
    Arithmetic,
    /// Evaluations of transcendental functions in a run.
    Transcendental,
    /// Bytes that a run reads and writes.
    Traffic,
}

impl Metric {
    /// A metric without a role or unit.
    pub fn new(name: &str, description: &str) -> Metric {
        Metric {
            name: name.to_owned(),
            unit: String::new(),
            description: description.to_owned(),
            role: MetricRole::Plain,
        }
    }

    /// The same with a role.
    pub fn role(self, role: MetricRole) -> Metric {
        Metric { role, ..self }
    }

    /// The same with a unit.
    pub fn unit(self, unit: &str) -> Metric {
        Metric { unit: unit.to_owned(), ..self }
    }
}

/// The most metrics of one kind that a worker can have.
pub const MOST_METRICS: usize = 8;

/// A value for each metric of one kind, in the order in which the worker declares them. It is copied
/// with every state, so it is kept in place.
///
/// ```
/// use xla_gym_protocol::Values;
/// let counts = Values::new(&[120_u64, 7]);
/// assert_eq!((counts.primary(), counts[1], counts.len()), (120, 7, 2));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Values<T> {
    length: u8,
    values: [T; MOST_METRICS],
}

/// Whole numbers, which the compiler counts: one for each of [`crate::Hello::counts`].
pub type Counts = Values<u64>;

/// The compiler's own estimates of work: one for each of [`crate::Hello::costs`].
pub type Cost = Values<f64>;

impl<T: Copy + Default> Values<T> {
    /// Takes the values in order.
    ///
    /// # Panics
    ///
    /// If there are more than [`MOST_METRICS`].
    pub fn new(values: &[T]) -> Values<T> {
        assert!(values.len() <= MOST_METRICS, "a worker has at most {MOST_METRICS} metrics");
        let mut kept = [T::default(); MOST_METRICS];
        kept[..values.len()].copy_from_slice(values);
        Values { length: values.len() as u8, values: kept }
    }

    /// The first: the primary metric, which passes are to make small. Zero where there is none.
    pub fn primary(&self) -> T {
        self.values[0]
    }
}

impl<T> Deref for Values<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.values[..usize::from(self.length)]
    }
}

impl<T: fmt::Debug> fmt::Debug for Values<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

impl<T: Serialize> Serialize for Values<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(&self[..])
    }
}

impl<'de, T: Deserialize<'de> + Copy + Default> Deserialize<'de> for Values<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let values = Vec::<T>::deserialize(deserializer)?;
        if values.len() > MOST_METRICS {
            return Err(D::Error::custom(format!("{} metrics are too many", values.len())));
        }
        Ok(Values::new(&values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cross_the_wire_and_too_many_are_refused() {
        let cost = Cost::new(&[1.5, f64::INFINITY]);
        let bytes = postcard::to_stdvec(&cost).unwrap();
        assert_eq!(postcard::from_bytes::<Cost>(&bytes).unwrap(), cost);
        let nine = postcard::to_stdvec(&vec![0_u64; MOST_METRICS + 1]).unwrap();
        assert!(postcard::from_bytes::<Counts>(&nine).is_err());
        assert_eq!(serde_json::to_string(&Counts::new(&[3, 4])).unwrap(), "[3,4]");
    }
}
