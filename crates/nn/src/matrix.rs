//! Rows of numbers.

/// Rows of numbers, one behind the other.
///
/// ```
/// use xla_gym_nn::Matrix;
///
/// let mut matrix = Matrix::from_vec(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
/// matrix.row_mut(1)[0] = 0.0;
/// assert_eq!((matrix.rows(), matrix.row(1)), (2, &[0.0, 5.0, 6.0][..]));
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    data: Vec<f32>,
}

impl Matrix {
    /// All zero.
    pub fn zeros(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, data: vec![0.0; rows * columns] }
    }

    /// From rows that lie one behind the other.
    ///
    /// # Panics
    ///
    /// If there are not `rows * columns` numbers.
    pub fn from_vec(rows: usize, columns: usize, data: Vec<f32>) -> Matrix {
        assert_eq!(data.len(), rows * columns, "a matrix of {rows} x {columns}");
        Matrix { rows, columns, data }
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many numbers in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// One row.
    pub fn row(&self, i: usize) -> &[f32] {
        assert!(i < self.rows, "row {i} of {}", self.rows);
        &self.data[i * self.columns..][..self.columns]
    }

    /// One row, to be changed.
    pub fn row_mut(&mut self, i: usize) -> &mut [f32] {
        assert!(i < self.rows, "row {i} of {}", self.rows);
        &mut self.data[i * self.columns..][..self.columns]
    }

    /// All rows, one behind the other.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All rows, one behind the other, to be changed.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Gives it another size and keeps its memory. What is in it then means nothing.
    pub(crate) fn resize(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.columns = columns;
        self.data.resize(rows * columns, 0.0);
    }

    /// Makes it `other` with rows and columns exchanged.
    pub(crate) fn set_transposed(&mut self, other: &Matrix) {
        self.resize(other.columns, other.rows);
        transpose(other.rows, other.columns, &other.data, &mut self.data);
    }
}

/// Exchanges rows and columns, by squares that fit into the nearest cache.
pub(crate) fn transpose(rows: usize, columns: usize, from: &[f32], to: &mut [f32]) {
    const SQUARE: usize = 16;
    for top in (0..rows).step_by(SQUARE) {
        for left in (0..columns).step_by(SQUARE) {
            for j in left..columns.min(left + SQUARE) {
                for i in top..rows.min(top + SQUARE) {
                    to[j * rows + i] = from[i * columns + j];
                }
            }
        }
    }
}
