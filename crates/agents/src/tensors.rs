//! Everything that is saved: named arrays of numbers, and a few words.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

use safetensors::{Dtype, SafeTensors, View};
use xla_gym_common::write_whole;
use xla_gym_nn::{Adam, Mlp, Shape};

use crate::error::AgentError;

/// Named arrays of numbers, and a few words about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    /// The arrays: shape and numbers.
    arrays: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
    /// Arrays of bytes.
    bytes: BTreeMap<String, Vec<u8>>,
    /// The words.
    pub words: BTreeMap<String, String>,
}

enum Array<'a> {
    Numbers(&'a [usize], &'a [f32]),
    Bytes([usize; 1], &'a [u8]),
}

impl View for Array<'_> {
    fn dtype(&self) -> Dtype {
        match self {
            Array::Numbers(..) => Dtype::F32,
            Array::Bytes(..) => Dtype::U8,
        }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Array::Numbers(shape, _) => shape,
            Array::Bytes(shape, _) => shape,
        }
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match self {
            Array::Numbers(_, numbers) => {
                Cow::Owned(numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
            }
            Array::Bytes(_, bytes) => Cow::Borrowed(bytes),
        }
    }

    fn data_len(&self) -> usize {
        match self {
            Array::Numbers(_, numbers) => numbers.len() * 4,
            Array::Bytes(_, bytes) => bytes.len(),
        }
    }
}

impl Tensors {
    /// Adds an array.
    pub fn add(&mut self, name: &str, shape: &[usize], numbers: &[f32]) {
        self.arrays.insert(name.to_owned(), (shape.to_vec(), numbers.to_vec()));
    }

    /// Finds an array.
    pub fn get(&self, name: &str) -> Result<&[f32], String> {
        let (_, numbers) = self.arrays.get(name).ok_or_else(|| format!("{name} is missing"))?;
        Ok(numbers)
    }

    /// Adds bytes.
    pub fn add_bytes(&mut self, name: &str, bytes: Vec<u8>) {
        self.bytes.insert(name.to_owned(), bytes);
    }

    /// Finds bytes.
    pub fn bytes(&self, name: &str) -> Result<&[u8], String> {
        Ok(self.bytes.get(name).ok_or_else(|| format!("{name} is missing"))?)
    }

    /// Adds a whole number of any size.
    pub fn add_number(&mut self, name: &str, number: u64) {
        self.words.insert(name.to_owned(), number.to_string());
    }

    /// Finds a whole number.
    pub fn number(&self, name: &str) -> Result<u64, String> {
        let word = self.words.get(name).ok_or_else(|| format!("{name} is missing"))?;
        word.parse().map_err(|_| format!("{name} is not a number: {word:?}"))
    }

    /// Adds a network, layer by layer, as other programs expect it.
    pub fn add_network(&mut self, name: &str, network: &Mlp) {
        let parameters = network.parameters();
        for (number, layer) in network.shape().layers().enumerate() {
            let shape = [layer.outputs, layer.inputs];
            self.add(&format!("{name}.{number}.weight"), &shape, &parameters[layer.weights]);
            self.add(&format!("{name}.{number}.bias"), &[layer.outputs], &parameters[layer.biases]);
        }
    }

    /// A network of a shape. Files come from strangers too, so nothing is allocated that the file
    /// does not hold.
    pub fn network(&self, name: &str, shape: Shape) -> Result<Mlp, String> {
        let mut inputs = shape.inputs;
        let widths = shape.hidden.iter().copied().chain([shape.outputs]);
        for (number, outputs) in widths.enumerate() {
            let weights = inputs.checked_mul(outputs).filter(|weights| *weights > 0);
            for (part, expected) in [("weight", weights), ("bias", Some(outputs))] {
                let name = format!("{name}.{number}.{part}");
                let found = self.get(&name)?.len();
                if expected != Some(found) {
                    return Err(format!(
                        "{name} has {found} numbers, and its shape of {inputs} by {outputs} says \
                         otherwise"
                    ));
                }
            }
            inputs = outputs;
        }
        let parameters = vec![0.0; shape.parameters()];
        let mut network = Mlp::from_parameters(shape, parameters).ok_or("the shape is wrong")?;
        self.load_network(name, &mut network)?;
        Ok(network)
    }

    /// Fills a network of the right shape.
    pub fn load_network(&self, name: &str, network: &mut Mlp) -> Result<(), String> {
        let layers: Vec<_> = network.shape().layers().enumerate().collect();
        for (number, layer) in layers {
            for (part, range) in [("weight", layer.weights), ("bias", layer.biases)] {
                let name = format!("{name}.{number}.{part}");
                let numbers = self.get(&name)?;
                if numbers.len() != range.len() {
                    let (found, expected) = (numbers.len(), range.len());
                    return Err(format!("{name} has {found} numbers, not {expected}"));
                }
                if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
                    return Err(format!("{name} has a weight that is {number}: train it again"));
                }
                network.parameters_mut()[range].copy_from_slice(numbers);
            }
        }
        Ok(())
    }

    /// Adds an optimiser.
    pub fn add_optimiser(&mut self, name: &str, adam: &Adam) {
        let (first, second) = adam.moments();
        self.add(&format!("{name}.first"), &[first.len()], first);
        self.add(&format!("{name}.second"), &[second.len()], second);
        self.add_number(&format!("{name}.steps"), adam.steps());
    }

    /// Fills an optimiser.
    pub fn load_optimiser(&self, name: &str, adam: &mut Adam) -> Result<(), String> {
        let first = self.get(&format!("{name}.first"))?;
        let second = self.get(&format!("{name}.second"))?;
        let expected = adam.moments().0.len();
        if first.len() != expected || second.len() != expected {
            return Err(format!("{name} is of a network of another size"));
        }
        let steps = self.number(&format!("{name}.steps"))?;
        adam.restore(steps, first, second);
        Ok(())
    }

    /// As the content of a file.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let numbers = self.arrays.iter().map(|(name, (s, n))| (name, Array::Numbers(s, n)));
        let bytes = self.bytes.iter().map(|(name, b)| (name, Array::Bytes([b.len()], b)));
        let arrays = numbers.chain(bytes);
        let words = self.words.clone().into_iter().collect();
        safetensors::serialize(arrays, Some(words)).map_err(|error| error.to_string())
    }

    /// Reads the content of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Tensors, String> {
        let words = |error: safetensors::SafeTensorError| format!("not safetensors: {error}");
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(words)?;
        let parsed = SafeTensors::deserialize(bytes).map_err(words)?;
        let mut tensors = Tensors {
            words: metadata
                .metadata()
                .iter()
                .flatten()
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect(),
            ..Tensors::default()
        };
        for (name, view) in parsed.tensors() {
            match view.dtype() {
                Dtype::F32 => {}
                Dtype::U8 => {
                    tensors.add_bytes(&name, view.data().to_vec());
                    continue;
                }
                other => return Err(format!("{name} is of {other:?}, not of 32-bit floats")),
            }
            let numbers = view.data().chunks_exact(4);
            let numbers = numbers.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            tensors.arrays.insert(name, (view.shape().to_vec(), numbers));
        }
        Ok(tensors)
    }

    /// Writes a file: whole and on the disk, or not at all.
    pub fn write(&self, path: &Path) -> Result<(), AgentError> {
        let failed = |error| AgentError::Write { path: path.to_owned(), error };
        let bytes = self.to_bytes().map_err(|m| failed(std::io::Error::other(m)))?;
        write_whole(path, &bytes).map_err(failed)
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Tensors, AgentError> {
        let bytes = std::fs::read(path)
            .map_err(|error| AgentError::Read { path: path.to_owned(), error })?;
        Tensors::from_bytes(&bytes)
            .map_err(|message| AgentError::Format { path: path.to_owned(), message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut tensors = Tensors::default();
        tensors.add("a", &[2, 3], &[1.0, -0.0, f32::MIN_POSITIVE, 1e30, 0.1, -7.5]);
        tensors.add_bytes("b", vec![0, 255, 7]);
        tensors.add_number("n", u64::MAX);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        tensors.write(&path).unwrap();
        let read = Tensors::read(&path).unwrap();
        assert_eq!(read, tensors);
        assert_eq!(read.number("n"), Ok(u64::MAX));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        std::fs::write(&path, b"garbage").unwrap();
        assert!(Tensors::read(&path).unwrap_err().to_string().contains("x.safetensors"));
    }
}
