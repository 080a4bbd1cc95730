module @jit_block attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<8xf32>, %arg1: tensor<8x16xf32>, %arg2: tensor<8x4xf32>, %arg3: tensor<8x8xf32>, %arg4: tensor<8x4xf32>, %arg5: tensor<8x8xf32>, %arg6: tensor<8xf32>, %arg7: tensor<3x8xf32>, %arg8: tensor<8x4xf32>, %arg9: tensor<2x16x8xf32>) -> (tensor<2x16x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %arg9, %arg1, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x8xf32>, tensor<8x16xf32>) -> tensor<2x16x16xf32>
    %1 = stablehlo.slice %0 [0:2, 0:16, 0:8] : (tensor<2x16x16xf32>) -> tensor<2x16x8xf32>
    %2 = stablehlo.slice %0 [0:2, 0:16, 8:16] : (tensor<2x16x16xf32>) -> tensor<2x16x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %3 = call @_pad(%1, %c) : (tensor<2x16x8xf32>, tensor<i32>) -> tensor<2x18x8xf32>
    %4 = stablehlo.slice %3 [0:2, 0:16, 0:8] : (tensor<2x18x8xf32>) -> tensor<2x16x8xf32>
    %5 = stablehlo.slice %arg7 [0:1, 0:8] : (tensor<3x8xf32>) -> tensor<1x8xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x8xf32>) -> tensor<8xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [2] : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x16x8xf32>
    %9 = stablehlo.multiply %4, %8 : tensor<2x16x8xf32>
    %10 = stablehlo.slice %3 [0:2, 1:17, 0:8] : (tensor<2x18x8xf32>) -> tensor<2x16x8xf32>
    %11 = stablehlo.slice %arg7 [1:2, 0:8] : (tensor<3x8xf32>) -> tensor<1x8xf32>
    %12 = stablehlo.reshape %11 : (tensor<1x8xf32>) -> tensor<8xf32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [2] : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %14 = stablehlo.broadcast_in_dim %13, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x16x8xf32>
    %15 = stablehlo.multiply %10, %14 : tensor<2x16x8xf32>
    %16 = stablehlo.slice %3 [0:2, 2:18, 0:8] : (tensor<2x18x8xf32>) -> tensor<2x16x8xf32>
    %17 = stablehlo.slice %arg7 [2:3, 0:8] : (tensor<3x8xf32>) -> tensor<1x8xf32>
    %18 = stablehlo.reshape %17 : (tensor<1x8xf32>) -> tensor<8xf32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [2] : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %20 = stablehlo.broadcast_in_dim %19, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x16x8xf32>
    %21 = stablehlo.multiply %16, %20 : tensor<2x16x8xf32>
    %22 = stablehlo.add %9, %15 : tensor<2x16x8xf32>
    %23 = stablehlo.add %22, %21 : tensor<2x16x8xf32>
    %24 = call @silu(%23) : (tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
    %25 = stablehlo.dot_general %24, %arg5, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x8xf32>, tensor<8x8xf32>) -> tensor<2x16x8xf32>
    %26 = stablehlo.broadcast_in_dim %arg6, dims = [2] : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x16x8xf32>
    %28 = stablehlo.add %25, %27 : tensor<2x16x8xf32>
    %29 = call @softplus(%28) : (tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
    %30 = stablehlo.dot_general %24, %arg8, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x8xf32>, tensor<8x4xf32>) -> tensor<2x16x4xf32>
    %31 = stablehlo.dot_general %24, %arg4, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x8xf32>, tensor<8x4xf32>) -> tensor<2x16x4xf32>
    %32 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2] : (tensor<2x16x8xf32>) -> tensor<2x16x8x1xf32>
    %33 = stablehlo.negate %32 : tensor<2x16x8x1xf32>
    %34 = stablehlo.exponential %arg2 : tensor<8x4xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [2, 3] : (tensor<8x4xf32>) -> tensor<1x1x8x4xf32>
    %36 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2, 3] : (tensor<2x16x8x1xf32>) -> tensor<2x16x8x4xf32>
    %37 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<1x1x8x4xf32>) -> tensor<2x16x8x4xf32>
    %38 = stablehlo.multiply %36, %37 : tensor<2x16x8x4xf32>
    %39 = stablehlo.exponential %38 : tensor<2x16x8x4xf32>
    %40 = stablehlo.multiply %29, %24 : tensor<2x16x8xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2] : (tensor<2x16x8xf32>) -> tensor<2x16x8x1xf32>
    %42 = stablehlo.broadcast_in_dim %30, dims = [0, 1, 3] : (tensor<2x16x4xf32>) -> tensor<2x16x1x4xf32>
    %43 = stablehlo.broadcast_in_dim %41, dims = [0, 1, 2, 3] : (tensor<2x16x8x1xf32>) -> tensor<2x16x8x4xf32>
    %44 = stablehlo.broadcast_in_dim %42, dims = [0, 1, 2, 3] : (tensor<2x16x1x4xf32>) -> tensor<2x16x8x4xf32>
    %45 = stablehlo.multiply %43, %44 : tensor<2x16x8x4xf32>
    %46 = stablehlo.slice %39 [0:2, 0:15:2, 0:8, 0:4] : (tensor<2x16x8x4xf32>) -> tensor<2x8x8x4xf32>
    %47 = stablehlo.slice %45 [0:2, 0:15:2, 0:8, 0:4] : (tensor<2x16x8x4xf32>) -> tensor<2x8x8x4xf32>
    %48 = stablehlo.slice %39 [0:2, 1:16:2, 0:8, 0:4] : (tensor<2x16x8x4xf32>) -> tensor<2x8x8x4xf32>
    %49 = stablehlo.slice %45 [0:2, 1:16:2, 0:8, 0:4] : (tensor<2x16x8x4xf32>) -> tensor<2x8x8x4xf32>
    %50 = stablehlo.multiply %46, %48 : tensor<2x8x8x4xf32>
    %51 = stablehlo.multiply %47, %48 : tensor<2x8x8x4xf32>
    %52 = stablehlo.add %51, %49 : tensor<2x8x8x4xf32>
    %53 = stablehlo.slice %50 [0:2, 0:7:2, 0:8, 0:4] : (tensor<2x8x8x4xf32>) -> tensor<2x4x8x4xf32>
    %54 = stablehlo.slice %52 [0:2, 0:7:2, 0:8, 0:4] : (tensor<2x8x8x4xf32>) -> tensor<2x4x8x4xf32>
    %55 = stablehlo.slice %50 [0:2, 1:8:2, 0:8, 0:4] : (tensor<2x8x8x4xf32>) -> tensor<2x4x8x4xf32>
    %56 = stablehlo.slice %52 [0:2, 1:8:2, 0:8, 0:4] : (tensor<2x8x8x4xf32>) -> tensor<2x4x8x4xf32>
    %57 = stablehlo.multiply %53, %55 : tensor<2x4x8x4xf32>
    %58 = stablehlo.multiply %54, %55 : tensor<2x4x8x4xf32>
    %59 = stablehlo.add %58, %56 : tensor<2x4x8x4xf32>
    %60 = stablehlo.slice %57 [0:2, 0:3:2, 0:8, 0:4] : (tensor<2x4x8x4xf32>) -> tensor<2x2x8x4xf32>
    %61 = stablehlo.slice %59 [0:2, 0:3:2, 0:8, 0:4] : (tensor<2x4x8x4xf32>) -> tensor<2x2x8x4xf32>
    %62 = stablehlo.slice %57 [0:2, 1:4:2, 0:8, 0:4] : (tensor<2x4x8x4xf32>) -> tensor<2x2x8x4xf32>
    %63 = stablehlo.slice %59 [0:2, 1:4:2, 0:8, 0:4] : (tensor<2x4x8x4xf32>) -> tensor<2x2x8x4xf32>
    %64 = stablehlo.multiply %60, %62 : tensor<2x2x8x4xf32>
    %65 = stablehlo.multiply %61, %62 : tensor<2x2x8x4xf32>
    %66 = stablehlo.add %65, %63 : tensor<2x2x8x4xf32>
    %67 = stablehlo.slice %66 [0:2, 0:1:2, 0:8, 0:4] : (tensor<2x2x8x4xf32>) -> tensor<2x1x8x4xf32>
    %68 = stablehlo.slice %64 [0:2, 1:2:2, 0:8, 0:4] : (tensor<2x2x8x4xf32>) -> tensor<2x1x8x4xf32>
    %69 = stablehlo.slice %66 [0:2, 1:2:2, 0:8, 0:4] : (tensor<2x2x8x4xf32>) -> tensor<2x1x8x4xf32>
    %70 = stablehlo.multiply %67, %68 : tensor<2x1x8x4xf32>
    %71 = stablehlo.add %70, %69 : tensor<2x1x8x4xf32>
    %72 = stablehlo.slice %71 [0:2, 0:0, 0:8, 0:4] : (tensor<2x1x8x4xf32>) -> tensor<2x0x8x4xf32>
    %73 = stablehlo.slice %64 [0:2, 2:2:2, 0:8, 0:4] : (tensor<2x2x8x4xf32>) -> tensor<2x0x8x4xf32>
    %74 = stablehlo.slice %66 [0:2, 2:2:2, 0:8, 0:4] : (tensor<2x2x8x4xf32>) -> tensor<2x0x8x4xf32>
    %75 = stablehlo.multiply %72, %73 : tensor<2x0x8x4xf32>
    %76 = stablehlo.add %75, %74 : tensor<2x0x8x4xf32>
    %77 = stablehlo.slice %66 [0:2, 0:1, 0:8, 0:4] : (tensor<2x2x8x4xf32>) -> tensor<2x1x8x4xf32>
    %78 = stablehlo.concatenate %77, %76, dim = 1 : (tensor<2x1x8x4xf32>, tensor<2x0x8x4xf32>) -> tensor<2x1x8x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %79 = stablehlo.pad %78, %cst, low = [0, 0, 0, 0], high = [0, 1, 0, 0], interior = [0, 1, 0, 0] : (tensor<2x1x8x4xf32>, tensor<f32>) -> tensor<2x2x8x4xf32>
    %80 = stablehlo.pad %71, %cst, low = [0, 1, 0, 0], high = [0, 0, 0, 0], interior = [0, 1, 0, 0] : (tensor<2x1x8x4xf32>, tensor<f32>) -> tensor<2x2x8x4xf32>
    %81 = stablehlo.add %79, %80 : tensor<2x2x8x4xf32>
    %82 = stablehlo.slice %81 [0:2, 0:1, 0:8, 0:4] : (tensor<2x2x8x4xf32>) -> tensor<2x1x8x4xf32>
    %83 = stablehlo.slice %57 [0:2, 2:4:2, 0:8, 0:4] : (tensor<2x4x8x4xf32>) -> tensor<2x1x8x4xf32>
    %84 = stablehlo.slice %59 [0:2, 2:4:2, 0:8, 0:4] : (tensor<2x4x8x4xf32>) -> tensor<2x1x8x4xf32>
    %85 = stablehlo.multiply %82, %83 : tensor<2x1x8x4xf32>
    %86 = stablehlo.add %85, %84 : tensor<2x1x8x4xf32>
    %87 = stablehlo.slice %59 [0:2, 0:1, 0:8, 0:4] : (tensor<2x4x8x4xf32>) -> tensor<2x1x8x4xf32>
    %88 = stablehlo.concatenate %87, %86, dim = 1 : (tensor<2x1x8x4xf32>, tensor<2x1x8x4xf32>) -> tensor<2x2x8x4xf32>
    %89 = stablehlo.pad %88, %cst, low = [0, 0, 0, 0], high = [0, 1, 0, 0], interior = [0, 1, 0, 0] : (tensor<2x2x8x4xf32>, tensor<f32>) -> tensor<2x4x8x4xf32>
    %90 = stablehlo.pad %81, %cst, low = [0, 1, 0, 0], high = [0, 0, 0, 0], interior = [0, 1, 0, 0] : (tensor<2x2x8x4xf32>, tensor<f32>) -> tensor<2x4x8x4xf32>
    %91 = stablehlo.add %89, %90 : tensor<2x4x8x4xf32>
    %92 = stablehlo.slice %91 [0:2, 0:3, 0:8, 0:4] : (tensor<2x4x8x4xf32>) -> tensor<2x3x8x4xf32>
    %93 = stablehlo.slice %50 [0:2, 2:8:2, 0:8, 0:4] : (tensor<2x8x8x4xf32>) -> tensor<2x3x8x4xf32>
    %94 = stablehlo.slice %52 [0:2, 2:8:2, 0:8, 0:4] : (tensor<2x8x8x4xf32>) -> tensor<2x3x8x4xf32>
    %95 = stablehlo.multiply %92, %93 : tensor<2x3x8x4xf32>
    %96 = stablehlo.add %95, %94 : tensor<2x3x8x4xf32>
    %97 = stablehlo.slice %52 [0:2, 0:1, 0:8, 0:4] : (tensor<2x8x8x4xf32>) -> tensor<2x1x8x4xf32>
    %98 = stablehlo.concatenate %97, %96, dim = 1 : (tensor<2x1x8x4xf32>, tensor<2x3x8x4xf32>) -> tensor<2x4x8x4xf32>
    %99 = stablehlo.pad %98, %cst, low = [0, 0, 0, 0], high = [0, 1, 0, 0], interior = [0, 1, 0, 0] : (tensor<2x4x8x4xf32>, tensor<f32>) -> tensor<2x8x8x4xf32>
    %100 = stablehlo.pad %91, %cst, low = [0, 1, 0, 0], high = [0, 0, 0, 0], interior = [0, 1, 0, 0] : (tensor<2x4x8x4xf32>, tensor<f32>) -> tensor<2x8x8x4xf32>
    %101 = stablehlo.add %99, %100 : tensor<2x8x8x4xf32>
    %102 = stablehlo.slice %101 [0:2, 0:7, 0:8, 0:4] : (tensor<2x8x8x4xf32>) -> tensor<2x7x8x4xf32>
    %103 = stablehlo.slice %39 [0:2, 2:16:2, 0:8, 0:4] : (tensor<2x16x8x4xf32>) -> tensor<2x7x8x4xf32>
    %104 = stablehlo.slice %45 [0:2, 2:16:2, 0:8, 0:4] : (tensor<2x16x8x4xf32>) -> tensor<2x7x8x4xf32>
    %105 = stablehlo.multiply %102, %103 : tensor<2x7x8x4xf32>
    %106 = stablehlo.add %105, %104 : tensor<2x7x8x4xf32>
    %107 = stablehlo.slice %45 [0:2, 0:1, 0:8, 0:4] : (tensor<2x16x8x4xf32>) -> tensor<2x1x8x4xf32>
    %108 = stablehlo.concatenate %107, %106, dim = 1 : (tensor<2x1x8x4xf32>, tensor<2x7x8x4xf32>) -> tensor<2x8x8x4xf32>
    %109 = stablehlo.pad %108, %cst, low = [0, 0, 0, 0], high = [0, 1, 0, 0], interior = [0, 1, 0, 0] : (tensor<2x8x8x4xf32>, tensor<f32>) -> tensor<2x16x8x4xf32>
    %110 = stablehlo.pad %101, %cst, low = [0, 1, 0, 0], high = [0, 0, 0, 0], interior = [0, 1, 0, 0] : (tensor<2x8x8x4xf32>, tensor<f32>) -> tensor<2x16x8x4xf32>
    %111 = stablehlo.add %109, %110 : tensor<2x16x8x4xf32>
    %112 = stablehlo.dot_general %111, %31, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<2x16x8x4xf32>, tensor<2x16x4xf32>) -> tensor<2x16x8xf32>
    %113 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<8xf32>) -> tensor<1x1x8xf32>
    %114 = stablehlo.broadcast_in_dim %113, dims = [0, 1, 2] : (tensor<1x1x8xf32>) -> tensor<2x16x8xf32>
    %115 = stablehlo.multiply %114, %24 : tensor<2x16x8xf32>
    %116 = stablehlo.add %112, %115 : tensor<2x16x8xf32>
    %117 = call @silu(%2) : (tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
    %118 = stablehlo.multiply %116, %117 : tensor<2x16x8xf32>
    %119 = stablehlo.dot_general %118, %arg3, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x16x8xf32>, tensor<8x8xf32>) -> tensor<2x16x8xf32>
    return %119 : tensor<2x16x8xf32>
  }
  func.func private @_pad(%arg0: tensor<2x16x8xf32>, %arg1: tensor<i32>) -> tensor<2x18x8xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [0, 2, 0], high = [0, 0, 0], interior = [0, 0, 0] : (tensor<2x16x8xf32>, tensor<f32>) -> tensor<2x18x8xf32>
    return %1 : tensor<2x18x8xf32>
  }
  func.func private @silu(%arg0: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
    %0 = stablehlo.negate %arg0 : tensor<2x16x8xf32>
    %1 = stablehlo.exponential %0 : tensor<2x16x8xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x16x8xf32>
    %3 = stablehlo.add %2, %1 : tensor<2x16x8xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x16x8xf32>
    %5 = stablehlo.divide %4, %3 : tensor<2x16x8xf32>
    %6 = stablehlo.multiply %arg0, %5 : tensor<2x16x8xf32>
    return %6 : tensor<2x16x8xf32>
  }
  func.func private @softplus(%arg0: tensor<2x16x8xf32>) -> tensor<2x16x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x16x8xf32>
    %1 = stablehlo.maximum %arg0, %0 : tensor<2x16x8xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x16x8xf32>
    %3 = stablehlo.subtract %arg0, %2 : tensor<2x16x8xf32>
    %4 = stablehlo.compare  NE, %3, %3,  FLOAT : (tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xi1>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x16x8xf32>
    %6 = stablehlo.add %arg0, %5 : tensor<2x16x8xf32>
    %7 = stablehlo.abs %3 : tensor<2x16x8xf32>
    %8 = stablehlo.negate %7 : tensor<2x16x8xf32>
    %9 = stablehlo.exponential %8 : tensor<2x16x8xf32>
    %10 = stablehlo.log_plus_one %9 : tensor<2x16x8xf32>
    %11 = stablehlo.add %1, %10 : tensor<2x16x8xf32>
    %12 = stablehlo.select %4, %6, %11 : tensor<2x16x8xi1>, tensor<2x16x8xf32>
    return %12 : tensor<2x16x8xf32>
  }
}
