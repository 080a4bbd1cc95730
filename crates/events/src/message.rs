//! As much of Protocol Buffers as an event needs: fields are appended one by one.

/// The bytes of a message.
#[derive(Debug, Default)]
pub struct Message {
    bytes: Vec<u8>,
}

/// How a field's value is laid out.
enum Wire {
    Varint = 0,
    Eight = 1,
    Counted = 2,
    Four = 5,
}

impl Message {
    /// The message so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A whole number that is not negative, a boolean or a constant of an enumeration.
    pub fn number(&mut self, field: u32, value: u64) {
        self.key(field, Wire::Varint);
        self.varint(value);
    }

    /// A number of eight bytes.
    pub fn double(&mut self, field: u32, value: f64) {
        self.key(field, Wire::Eight);
        self.bytes.extend(value.to_le_bytes());
    }

    /// A number of four bytes.
    pub fn float(&mut self, field: u32, value: f32) {
        self.key(field, Wire::Four);
        self.bytes.extend(value.to_le_bytes());
    }

    /// A string.
    pub fn text(&mut self, field: u32, text: &str) {
        self.counted(field, text.as_bytes());
    }

    /// A row of numbers of eight bytes each.
    pub fn doubles(&mut self, field: u32, values: &[f64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.counted(field, &bytes);
    }

    /// A message within the message.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        fill(&mut inner);
        self.counted(field, &inner.bytes);
    }

    fn counted(&mut self, field: u32, bytes: &[u8]) {
        self.key(field, Wire::Counted);
        self.varint(bytes.len() as u64);
        self.bytes.extend(bytes);
    }

    fn key(&mut self, field: u32, wire: Wire) {
        self.varint(u64::from(field) << 3 | wire as u64);
    }

    /// Seven bits a byte, the lowest first; the eighth says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    /// The examples of the encoding's own documentation.
    #[test]
    fn fields_are_laid_out_as_documented() {
        let mut message = Message::default();
        message.number(1, 150);
        assert_eq!(message.bytes(), [0x08, 0x96, 0x01]);

        let mut message = Message::default();
        message.text(2, "testing");
        assert_eq!(message.bytes(), b"\x12\x07testing");

        let mut message = Message::default();
        message.message(3, |inner| inner.number(1, 150));
        assert_eq!(message.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);

        let mut message = Message::default();
        message.number(16, u64::MAX);
        assert_eq!(message.bytes()[..2], [0x80, 0x01]);
        assert_eq!(message.bytes()[2..], [0xff, 255, 255, 255, 255, 255, 255, 255, 255, 1]);
    }
}
