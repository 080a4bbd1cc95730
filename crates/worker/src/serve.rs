//! Reads requests, calls the compiler, writes replies.

#![allow(unsafe_code, reason = "fork, and taking over the inherited socket")]

use std::{
    collections::HashMap,
    io::IoSliceMut,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    process,
    time::{Duration, Instant},
};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use xla_gym_protocol::{
    Array, ExecutableId, Failure, FailureKind, FrameError, Hello, Limits, Observation, Observe,
    PROTOCOL_VERSION, PassId, ProgramId, Reply, Request, Step, WORKER_SOCKET_FD, look_out,
    read_frame, write_frame,
};

use crate::{
    compiler::{Compiler, failed},
    dying, inherit, limits,
};

/// Until the client sets limits.
const INITIAL_LIMITS: Limits =
    Limits { pass_millis: 30_000, request_millis: 120_000, memory_bytes: u64::MAX };

/// Serves the client on [`WORKER_SOCKET_FD`] until it goes away. Never returns.
pub fn serve<C: Compiler>(mut compiler: C) -> ! {
    dying::install();
    // SAFETY: the client that started this process left its socket at this descriptor.
    let socket = unsafe { UnixStream::from_raw_fd(WORKER_SOCKET_FD) };
    if socket.peer_addr().is_err() {
        eprintln!(
            "this program is a compiler worker: it is started by xla-gym, with a socket as \
             descriptor {WORKER_SOCKET_FD}"
        );
        process::exit(2);
    }
    inherit::forget_start_up();
    compiler.warm_up();
    inherit::prepare();
    let socket = leave_threads_behind(socket);
    let mut server = Server {
        compiler,
        socket,
        limits: INITIAL_LIMITS,
        forked: false,
        alone: false,
        programs: HashMap::new(),
        executables: HashMap::new(),
        next_id: 0,
        read_scratch: Vec::new(),
        write_scratch: Vec::new(),
    };
    let result = server.run();
    if !server.forked {
        // The others lose their client at the same time, or run into their limits.
        let Limits { pass_millis, request_millis, .. } = server.limits;
        limits::arm(Duration::from_millis(pass_millis.max(request_millis)));
        dying::outlive_children();
    }
    match result {
        // Skips the destructors of a compiler that may have been left in any state.
        Ok(()) | Err(FrameError::Closed) => immediate_exit(0),
        Err(error) => {
            eprintln!("xla-gym-worker: {error}");
            immediate_exit(1)
        }
    }
}

/// How long threads that the compiler started get to come to rest.
const SETTLE: Duration = Duration::from_millis(30);

/// Goes on in a fork if warming up has started threads: a fork has only the thread that forked.
/// A compiler may start threads of its own at first use. A process that has them cannot be forked at any moment, since they may hold a lock just then,
/// which nobody would ever release in the fork. So they are started early, come to rest, and
/// stay behind in a process that does nothing but wait for this one to end.
fn leave_threads_behind(socket: UnixStream) -> UnixStream {
    if limits::threads() == 1 {
        return socket;
    }
    std::thread::sleep(SETTLE);
    // SAFETY: the other threads are at rest, as far as anybody can know. The child dies with
    // its parent, which is the process that the client knows.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: a plain system call.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            socket
        }
        -1 => socket,
        _ => {
            drop(socket);
            dying::outlive_children();
            immediate_exit(0)
        }
    }
}

fn immediate_exit(status: i32) -> ! {
    // SAFETY: ends the process.
    unsafe { libc::_exit(status) }
}

/// A program, or what is left of it after a pass failed on it.
enum Slot<P> {
    Intact(Loaded<P>),
    Broken,
}

/// A program and what is known of its present state: most passes change nothing, and looking
/// again would cost more than many of them.
struct Loaded<P> {
    program: P,
    seen: Observation,
}

impl<P> Slot<P> {
    fn new(program: P) -> Slot<P> {
        Slot::Intact(Loaded { program, seen: Observation::default() })
    }
}

impl<P> Loaded<P> {
    fn observe<C: Compiler<Program = P>>(
        &mut self,
        compiler: &mut C,
        observe: Observe,
    ) -> Observation {
        let missing = observe.without(self.seen.known());
        if missing != Observe::NOTHING {
            self.seen.add(compiler.observe(&mut self.program, missing));
        }
        self.seen.select(observe)
    }
}

struct Server<C: Compiler> {
    compiler: C,
    socket: UnixStream,
    limits: Limits,
    /// Whether another worker is this one's parent.
    forked: bool,
    /// Whether the client says that no other worker is at work.
    alone: bool,
    programs: HashMap<ProgramId, Slot<C::Program>>,
    executables: HashMap<ExecutableId, C::Executable>,
    next_id: u32,
    read_scratch: Vec<u8>,
    write_scratch: Vec<u8>,
}

impl<C: Compiler> Server<C> {
    fn run(&mut self) -> Result<(), FrameError> {
        loop {
            look_out(&self.socket, || self.alone);
            let request = read_frame(&mut self.socket, &mut self.read_scratch)?;
            limits::arm(Duration::from_millis(self.limits.request_millis));
            self.alone = false;
            let reply = match request {
                Request::Fork => self.fork(),
                Request::Apply { program, passes, observe, look_out } => {
                    self.alone = look_out;
                    self.apply(program, &passes, observe)?
                }
                other => Some(self.answer(other).unwrap_or_else(Reply::Failed)),
            };
            limits::disarm();
            if let Some(reply) = reply {
                self.send(&reply)?;
            }
        }
    }

    fn send(&mut self, reply: &Reply) -> Result<(), FrameError> {
        write_frame(&mut self.socket, reply, &mut self.write_scratch)
    }

    /// Every request but those that talk more than once or split the process.
    fn answer(&mut self, request: Request) -> Result<Reply, Failure> {
        Ok(match request {
            Request::Fork | Request::Apply { .. } => unreachable!("handled by the loop"),
            Request::Hello { protocol } => self.hello(protocol)?,
            Request::Limits(new) => {
                self.limits = new;
                limits::limit_memory(new.memory_bytes);
                Reply::Done
            }
            Request::Load { bytes, verify } => {
                let mut program = self.compiler.load(&bytes)?;
                if verify {
                    self.compiler
                        .verify(&mut program)
                        .map_err(|message| failed(FailureKind::Invalid, message))?;
                }
                Reply::Loaded { program: self.insert(program), threads: limits::threads() }
            }
            Request::Observe { program, observe } => {
                let (compiler, loaded) = self.loaded(program)?;
                Reply::Observation(loaded.observe(compiler, observe))
            }
            Request::Breakdown { program } => {
                let (compiler, program) = self.program(program)?;
                Reply::Breakdown(compiler.breakdown(program)?)
            }
            Request::Graph { program } => {
                let (compiler, program) = self.program(program)?;
                Reply::Graph(compiler.graph(program)?)
            }
            Request::Print { program, form } => {
                let (compiler, program) = self.program(program)?;
                Reply::Bytes(compiler.print(program, form)?)
            }
            Request::Clone { program } => {
                let (compiler, program) = self.program(program)?;
                let copy = compiler.copy(program);
                Reply::Program(self.insert(copy))
            }
            Request::Restore { program, from } => {
                let (compiler, from) = self.program(from)?;
                let copy = compiler.copy(from);
                self.programs.insert(program, Slot::new(copy));
                Reply::Done
            }
            Request::Drop { program } => {
                self.programs.remove(&program);
                Reply::Done
            }
            Request::Pipeline { program, options, observe } => {
                let (compiler, program) = self.program(program)?;
                let (mut report, programs) = compiler.pipeline(program, &options, observe)?;
                if options.keep {
                    for (stage, program) in report.stages.iter_mut().zip(programs) {
                        if let (Some(stage), Some(program)) = (stage, program) {
                            stage.program = Some(self.insert(program));
                        }
                    }
                }
                Reply::Pipeline(Box::new(report))
            }
            Request::Signature { program } => {
                let (compiler, program) = self.program(program)?;
                Reply::Signature(compiler.signature(program)?)
            }
            Request::Promote { program, decisions, nudge } => {
                let (compiler, program) = self.program(program)?;
                let (promoted, decisions) = compiler.promote(program, decisions, nudge)?;
                Reply::Promoted { program: self.insert(promoted), decisions }
            }
            Request::Compile { program, options } => {
                let (compiler, program) = self.program(program)?;
                let (compiled, nanos, memory) = compiler.compile(program, &options)?;
                let executable = ExecutableId(self.fresh_id());
                self.executables.insert(executable, compiled);
                Reply::Compiled { executable, nanos, memory }
            }
            Request::MakeInputs { executable, inputs } => {
                let (compiler, executable) = self.executable(executable)?;
                xla_gym_arrays::check_size(&inputs)
                    .map_err(|reason| failed(FailureKind::Refused, reason))?;
                // One by one: all of them may be a good part of the memory.
                for (place, input) in inputs.inputs.iter().enumerate() {
                    let array = xla_gym_arrays::make_array(input, place, &inputs);
                    compiler.set_input(executable, place, array)?;
                }
                Reply::Done
            }
            Request::Execute { executable, runs, outputs } => {
                let (compiler, executable) = self.executable(executable)?;
                let nanos =
                    (0..runs).map(|_| compiler.execute(executable)).collect::<Result<_, _>>()?;
                let outputs = if outputs { outputs_of(compiler, executable)? } else { Vec::new() };
                Reply::Executed { nanos, outputs }
            }
            Request::Race { executables, rounds, nanos } => {
                Reply::Raced { nanos: self.race(&executables, rounds, nanos)? }
            }
        })
    }

    /// Runs programs in turn: forwards, then backwards, so that none always follows the same one.
    fn race(
        &mut self,
        executables: &[ExecutableId],
        rounds: u32,
        nanos: u64,
    ) -> Result<Vec<Vec<u64>>, Failure> {
        let begin = Instant::now();
        let mut times = vec![Vec::new(); executables.len()];
        for round in 0..rounds {
            if round > 0 && begin.elapsed() >= Duration::from_nanos(nanos) {
                break;
            }
            for turn in 0..executables.len() {
                let place = if round % 2 == 0 { turn } else { executables.len() - 1 - turn };
                let (compiler, executable) = self.executable(executables[place])?;
                times[place].push(compiler.execute(executable)?);
            }
        }
        Ok(times)
    }

    fn hello(&mut self, protocol: u32) -> Result<Reply, Failure> {
        if protocol != PROTOCOL_VERSION {
            return Err(failed(
                FailureKind::Misuse,
                format!(
                    "the client speaks protocol {protocol}, this worker {PROTOCOL_VERSION}: \
                     build both from the same source"
                ),
            ));
        }
        let about = self.compiler.describe();
        Ok(Reply::Hello(Hello {
            protocol: PROTOCOL_VERSION,
            engine: about.engine,
            version: about.version,
            passes: about.passes,
            opcodes: about.opcodes,
            counts: about.counts,
            costs: about.costs,
            finals: about.finals,
            counting: about.counting,
            node_features: about.node_features,
            forms: about.forms,
            pipelines: about.pipelines,
            pid: process::id() as i32,
        }))
    }

    /// One reply a pass, each sent before the next pass starts. The last one is returned.
    fn apply(
        &mut self,
        id: ProgramId,
        passes: &[PassId],
        observe: Observe,
    ) -> Result<Option<Reply>, FrameError> {
        for &pass in passes {
            limits::arm(Duration::from_millis(self.limits.pass_millis));
            let (compiler, loaded) = match self.loaded(id) {
                Ok(found) => found,
                Err(failure) => return Ok(Some(Reply::Failed(failure))),
            };
            let before = compiler.version(&loaded.program);
            let start = Instant::now();
            let mut outcome = compiler.apply(&mut loaded.program, pass);
            let nanos = start.elapsed().as_nanos() as u64;
            let broken = outcome.is_err();
            let after = compiler.version(&loaded.program);
            if after.0 != before.0 {
                outcome = outcome.and(Ok(true));
            }
            if outcome != Ok(false) || after.1 != before.1 {
                loaded.seen = Observation::default();
            }
            let observation =
                if broken { Observation::default() } else { loaded.observe(compiler, observe) };
            // Not while the client, which may be slow to read, is waited for; and an alarm that
            // went off after the answer would be blamed on the next pass.
            limits::disarm();
            self.send(&Reply::Step(Step { outcome, nanos, observation }))?;
            if broken {
                self.programs.insert(id, Slot::Broken);
                break;
            }
        }
        Ok(None)
    }

    /// The parent answers; the child goes on with the new socket and says nothing.
    fn fork(&mut self) -> Option<Reply> {
        let (socket, errors) = match receive_two_descriptors(&self.socket) {
            Ok(pair) => pair,
            Err(message) => return Some(Reply::Failed(failed(FailureKind::Misuse, message))),
        };
        if limits::threads() > 1 {
            return Some(Reply::Failed(failed(
                FailureKind::Unsupported,
                "a pass has started threads, so that this process cannot be forked any more",
            )));
        }
        // SAFETY: this process has one thread.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: both descriptors are open and ours; 2 is replaced atomically.
                unsafe { libc::dup2(errors.as_raw_fd(), 2) };
                self.socket = UnixStream::from(socket);
                self.forked = true;
                limits::watch_client(self.socket.as_raw_fd());
                None
            }
            -1 => Some(Reply::Failed(failed(
                FailureKind::Refused,
                format!("fork failed: {}", std::io::Error::last_os_error()),
            ))),
            pid => Some(Reply::Forked { pid }),
        }
    }

    fn fresh_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    fn insert(&mut self, program: C::Program) -> ProgramId {
        let id = ProgramId(self.fresh_id());
        self.programs.insert(id, Slot::new(program));
        id
    }

    fn program(&mut self, id: ProgramId) -> Result<(&mut C, &mut C::Program), Failure> {
        self.loaded(id).map(|(compiler, loaded)| (compiler, &mut loaded.program))
    }

    fn loaded(&mut self, id: ProgramId) -> Result<(&mut C, &mut Loaded<C::Program>), Failure> {
        match self.programs.get_mut(&id) {
            Some(Slot::Intact(loaded)) => Ok((&mut self.compiler, loaded)),
            Some(Slot::Broken) => Err(failed(
                FailureKind::Misuse,
                "a pass failed on this program and may have left it half changed",
            )),
            None => Err(failed(FailureKind::Misuse, format!("there is no program {}", id.0))),
        }
    }

    fn executable(&mut self, id: ExecutableId) -> Result<(&mut C, &mut C::Executable), Failure> {
        match self.executables.get_mut(&id) {
            Some(executable) => Ok((&mut self.compiler, executable)),
            None => Err(failed(FailureKind::Misuse, format!("there is no executable {}", id.0))),
        }
    }
}

/// The one byte that follows a fork request and carries the descriptors.
fn receive_two_descriptors(socket: &UnixStream) -> Result<(OwnedFd, OwnedFd), String> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        socket.as_fd(),
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )
    .map_err(|error| format!("no descriptors came with the fork request: {error}"))?;
    let mut descriptors = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights),
            _ => None,
        })
        .flatten();
    match (descriptors.next(), descriptors.next()) {
        (Some(socket), Some(errors)) => Ok((socket, errors)),
        _ => Err("the fork request came without its two descriptors".to_owned()),
    }
}

/// Outputs of the last run; where they are large together, the large ones in brief.
fn outputs_of<C: Compiler>(
    compiler: &mut C,
    executable: &C::Executable,
) -> Result<Vec<Array>, Failure> {
    let sizes = compiler.output_sizes(executable)?;
    let together = sizes.iter().fold(0u64, |sum, size| sum.saturating_add(*size));
    let output = |(place, &size): (usize, &u64)| {
        let array = compiler.output(executable, place)?;
        Ok(match xla_gym_arrays::is_brief(size, together) {
            true => xla_gym_arrays::brief(&array),
            false => array,
        })
    };
    sizes.iter().enumerate().map(output).collect()
}
