//! Length-prefixed frames of postcard.

use std::io::{self, Read, Write};

use serde::{Serialize, de::DeserializeOwned};

/// No honest message is longer; a larger length means that the two sides are out of step.
pub const MAX_FRAME: usize = 1 << 30;

/// Why a message could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side closed the connection (it ended, or was killed).
    #[error("the connection was closed")]
    Closed,
    /// Reading or writing failed.
    #[error("the connection failed: {0}")]
    Io(#[source] io::Error),
    /// What arrived is no message of this protocol version.
    #[error("a message could not be understood: {0}")]
    Malformed(String),
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::ConnectionReset => FrameError::Closed,
            _ => FrameError::Io(error),
        }
    }
}

/// Writes one message with a single call of `write`, so that a frame is never half sent by a
/// process that dies in between. `scratch` is reused from call to call.
pub fn write_frame<T: Serialize>(
    stream: &mut impl Write,
    message: &T,
    scratch: &mut Vec<u8>,
) -> Result<(), FrameError> {
    scratch.clear();
    scratch.extend_from_slice(&[0; 4]);
    let mut frame = postcard::to_extend(message, std::mem::take(scratch))
        .map_err(|error| FrameError::Malformed(error.to_string()))?;
    let length = frame.len() - 4;
    if length > MAX_FRAME {
        return Err(FrameError::Malformed(format!("a message of {length} bytes is too long")));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    let result = stream.write_all(&frame);
    *scratch = frame;
    Ok(result?)
}

/// Reads one message. `scratch` is reused from call to call.
pub fn read_frame<T: DeserializeOwned>(
    stream: &mut impl Read,
    scratch: &mut Vec<u8>,
) -> Result<T, FrameError> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(FrameError::Malformed(format!("a message of {length} bytes is announced")));
    }
    scratch.resize(length, 0);
    stream.read_exact(scratch)?;
    postcard::from_bytes(scratch).map_err(|error| FrameError::Malformed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Observe, PassId, ProgramId, Request};

    #[test]
    fn a_message_survives_the_trip() {
        let sent = Request::Apply {
            program: ProgramId(7),
            passes: vec![PassId(1), PassId(300)],
            observe: Observe::COUNTS | Observe::COST,
            look_out: true,
        };
        let mut wire = Vec::new();
        write_frame(&mut wire, &sent, &mut Vec::new()).unwrap();
        let got: Request = read_frame(&mut wire.as_slice(), &mut Vec::new()).unwrap();
        assert_eq!(sent, got);
    }

    #[test]
    fn a_cut_frame_reads_as_closed() {
        let mut wire = Vec::new();
        write_frame(&mut wire, &Request::Hello { protocol: 1 }, &mut Vec::new()).unwrap();
        for cut in 0..wire.len() {
            let result = read_frame::<Request>(&mut &wire[..cut], &mut Vec::new());
            assert!(matches!(result, Err(FrameError::Closed)), "cut at {cut}");
        }
    }

    #[test]
    fn noise_is_malformed_and_never_allocates_what_it_announces() {
        let noise = [0xff_u8; 64];
        let result = read_frame::<Request>(&mut noise.as_slice(), &mut Vec::new());
        assert!(matches!(result, Err(FrameError::Malformed(_))));
    }
}
