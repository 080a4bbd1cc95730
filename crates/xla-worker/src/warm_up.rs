//! A first run of everything that every worker will do, before the first fork: it brings the
//! code into memory, which forked workers inherit.

use xla_gym_protocol::{Form, Observe, PassId};
use xla_gym_worker::Compiler;

use crate::Xla;

/// One of most things that passes look for.
const PROGRAM: &[u8] = b"HloModule warm_up

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
twice { x = f32[8,8] parameter(0)  ROOT y = f32[8,8] add(x, x) }
body { s = (s32[], f32[8,8]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  m = f32[8,8] get-tuple-element(s), index=1  one = s32[] constant(1)  j = s32[] add(i, one)
  d = f32[8,8] dot(m, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (s32[], f32[8,8]) tuple(j, d) }
condition { s = (s32[], f32[8,8]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(3)  ROOT p = pred[] compare(i, n), direction=LT }

ENTRY main {
  x = f32[8,8] parameter(0)  z = f32[] constant(0)  zb = f32[8,8] broadcast(z), dimensions={}
  one = f32[] constant(1)  ob = f32[8,8] broadcast(one), dimensions={}  k = f32[8,8] multiply(x, ob)
  three = f32[] constant(3)  fold = f32[] exponential(three)  fb = f32[8,8] broadcast(fold), dimensions={}
  kk = f32[8,8] multiply(k, fb)  c = f32[8,8] call(kk), to_apply=twice  tr = f32[8,8] transpose(c), dimensions={1,0}
  tt = f32[8,8] transpose(tr), dimensions={1,0}  a = f32[8,8] add(tt, zb)
  r = f32[64] reshape(a)  e = f32[64] exponential(r)  q = f32[8,8] reshape(e)
  i = s32[] constant(0)  s = (s32[], f32[8,8]) tuple(i, q)
  w = (s32[], f32[8,8]) while(s), condition=condition, body=body
  m = f32[8,8] get-tuple-element(w), index=1  v = f32[8] reduce(m, z), dimensions={0}, to_apply=add
  ROOT out = (f32[8], f32[8,8]) tuple(v, m)
}
";

pub fn run(xla: &mut Xla) {
    let passes = xla_gym_xla_shim::pass_table();
    let Ok(start) = xla.load(PROGRAM) else { return };
    let everything = Observe::COUNTS | Observe::OPCODES | Observe::COST | Observe::FINGERPRINT;
    for (index, pass) in passes.iter().enumerate() {
        if pass.after_layout {
            continue;
        }
        let mut program = xla.copy(&start);
        let changed = xla.apply(&mut program, PassId(index as u16));
        if changed.is_ok() {
            xla.observe(&mut program, everything | Observe::VERDICT);
        }
    }
    let _ = xla.print(&start, Form::TEXT);
    let _ = xla.print(&start, Form::BINARY);
}
