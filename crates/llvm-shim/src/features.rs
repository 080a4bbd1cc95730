//! Names of what is counted.

/// LLVM's opcodes, in its own order, which has not changed since LLVM 10.
#[rustfmt::skip]
pub const OPCODES: [&str; 67] = [
    "ret", "br", "switch", "indirectbr", "invoke", "resume", "unreachable", "cleanupret",
    "catchret", "catchswitch", "callbr", "fneg", "add", "fadd", "sub", "fsub", "mul", "fmul",
    "udiv", "sdiv", "fdiv", "urem", "srem", "frem", "shl", "lshr", "ashr", "and", "or", "xor",
    "alloca", "load", "store", "getelementptr", "fence", "cmpxchg", "atomicrmw", "trunc", "zext",
    "sext", "fptoui", "fptosi", "uitofp", "sitofp", "fptrunc", "fpext", "ptrtoint", "inttoptr",
    "bitcast", "addrspacecast", "cleanuppad", "catchpad", "icmp", "fcmp", "phi", "call", "select",
    "userop1", "userop2", "va_arg", "extractelement", "insertelement", "shufflevector",
    "extractvalue", "insertvalue", "landingpad", "freeze",
];

/// The features of LLVM's InstCount as CompilerGym names them: three totals, then one for each of
/// [`OPCODES`]. Functions are those with a body.
#[rustfmt::skip]
pub const INST_COUNT: [&str; 70] = [
    "TotalInstsCount", "TotalBlocksCount", "TotalFuncsCount",
    "RetCount", "BrCount", "SwitchCount", "IndirectBrCount", "InvokeCount", "ResumeCount",
    "UnreachableCount", "CleanupRetCount", "CatchRetCount", "CatchSwitchCount", "CallBrCount",
    "FNegCount", "AddCount", "FAddCount", "SubCount", "FSubCount", "MulCount", "FMulCount",
    "UDivCount", "SDivCount", "FDivCount", "URemCount", "SRemCount", "FRemCount", "ShlCount",
    "LShrCount", "AShrCount", "AndCount", "OrCount", "XorCount", "AllocaCount", "LoadCount",
    "StoreCount", "GetElementPtrCount", "FenceCount", "AtomicCmpXchgCount", "AtomicRMWCount",
    "TruncCount", "ZExtCount", "SExtCount", "FPToUICount", "FPToSICount", "UIToFPCount",
    "SIToFPCount", "FPTruncCount", "FPExtCount", "PtrToIntCount", "IntToPtrCount", "BitCastCount",
    "AddrSpaceCastCount", "CleanupPadCount", "CatchPadCount", "ICmpCount", "FCmpCount", "PHICount",
    "CallCount", "SelectCount", "UserOp1Count", "UserOp2Count", "VAArgCount",
    "ExtractElementCount", "InsertElementCount", "ShuffleVectorCount", "ExtractValueCount",
    "InsertValueCount", "LandingPadCount", "FreezeCount",
];

/// The features of Autophase (Huang et al., FCCM 2019) as CompilerGym names them.
///
/// Two places where the paper's words leave a choice: `BeginPhi` counts blocks whose first
/// instruction is a phi, and `TotalFuncs` counts functions with a body ("non-external"), while
/// CompilerGym's code counts declared ones as well.
#[rustfmt::skip]
pub const AUTOPHASE: [&str; 56] = [
    // Blocks by the arguments of their phis together: more than 5, 1 to 5.
    "BBNumArgsHi", "BBNumArgsLo",
    // Blocks by predecessors and successors.
    "onePred", "onePredOneSuc", "onePredTwoSuc", "oneSuccessor", "twoPred", "twoPredOneSuc",
    "twoEach", "twoSuccessor", "morePreds",
    // Blocks by phis: 1 to 3, more than 3, none; beginning with one.
    "BB03Phi", "BBHiPhi", "BBNoPhi", "BeginPhi",
    // Branches; direct calls of functions that give an integer; edges that are critical; edges.
    "BranchCount", "returnInt", "CriticalCount", "NumEdges",
    // Integer constants among operands, by width and by value.
    "const32Bit", "const64Bit", "numConstZeroes", "numConstOnes",
    // Unconditional branches; binary operations on a constant.
    "UncondBranches", "binaryConstArg",
    // Instructions by opcode, and blocks by length: 15 to 500, less than 15.
    "NumAShrInst", "NumAddInst", "NumAllocaInst", "NumAndInst", "BlockMid", "BlockLow",
    "NumBitCastInst", "NumBrInst", "NumCallInst", "NumGetElementPtrInst", "NumICmpInst",
    "NumLShrInst", "NumLoadInst", "NumMulInst", "NumOrInst", "NumPHIInst", "NumRetInst",
    "NumSExtInst", "NumSelectInst", "NumShlInst", "NumStoreInst", "NumSubInst", "NumTruncInst",
    "NumXorInst", "NumZExtInst",
    // Totals; memory: getelementptr, load, store, call, invoke, alloca.
    "TotalBlocks", "TotalInsts", "TotalMemInst", "TotalFuncs",
    // Arguments of all phis; instructions with one operand by their class: loads, casts, allocas,
    // negations.
    "ArgsPhi", "testUnary",
];
