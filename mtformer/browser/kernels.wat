;; Products of matrices with WebAssembly's vectors of 16 bytes. scripts/build_kernels.py makes kernels_wasm.js of it.
;;
;; "int8" and "float32" map x (n, stride) to y (n, width), in float32: y[i, o] = sum over j of x[i, j] · w[o, j], for
;; the matrix W (n_out, stride). Four rows of W at a time stay in the cache for all rows of x. Hence width is n_out
;; rounded up to a multiple of 4; the last columns of y have the sums of whatever follows W. $w, $x and $y are places in
;; bytes, and stride is a multiple of 8 numbers.
(module
  (import "page" "memory" (memory 1))

  ;; Adds up the 4 numbers of each of 4 vectors, and stores the sums.
  (func $store_sums (param $place i32) (param $a v128) (param $b v128) (param $c v128) (param $d v128)
    ;; (a0+a2, b0+b2, a1+a3, b1+b3), and so for c and d
    (local.set $a (f32x4.add
      (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $a) (local.get $b))
      (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $a) (local.get $b))))
    (local.set $c (f32x4.add
      (i8x16.shuffle 0 1 2 3 16 17 18 19 4 5 6 7 20 21 22 23 (local.get $c) (local.get $d))
      (i8x16.shuffle 8 9 10 11 24 25 26 27 12 13 14 15 28 29 30 31 (local.get $c) (local.get $d))))
    (v128.store (local.get $place) (f32x4.add
      (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $c))
      (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $c)))))

  ;; W of 8-bit and x of 16-bit integers, whose sums of 32 bits the caller keeps from overflowing
  (func (export "int8")
    (param $w i32) (param $n_out i32) (param $stride i32) (param $x i32) (param $n i32) (param $y i32)
    (local $o i32) (local $i i32) (local $width i32) (local $row_bytes i32) (local $x_end i32) (local $xj i32)
    (local $w0 i32) (local $w1 i32) (local $w2 i32) (local $w3 i32) (local $start i32)
    (local $v v128) (local $s0 v128) (local $s1 v128) (local $s2 v128) (local $s3 v128)
    (local.set $width (i32.and (i32.add (local.get $n_out) (i32.const 3)) (i32.const -4)))
    (local.set $row_bytes (local.get $stride))
    (loop $rows_of_w
      (local.set $start (i32.add (local.get $w) (i32.mul (local.get $o) (local.get $row_bytes))))
      (local.set $xj (local.get $x))
      (local.set $i (i32.const 0))
      (loop $rows_of_x
        (local.set $w0 (local.get $start))
        (local.set $w1 (i32.add (local.get $w0) (local.get $row_bytes)))
        (local.set $w2 (i32.add (local.get $w1) (local.get $row_bytes)))
        (local.set $w3 (i32.add (local.get $w2) (local.get $row_bytes)))
        (local.set $s0 (v128.const i32x4 0 0 0 0))
        (local.set $s1 (v128.const i32x4 0 0 0 0))
        (local.set $s2 (v128.const i32x4 0 0 0 0))
        (local.set $s3 (v128.const i32x4 0 0 0 0))
        (local.set $x_end (i32.add (local.get $xj) (i32.shl (local.get $stride) (i32.const 1))))
        (loop $columns
          (local.set $v (v128.load (local.get $xj)))
          (local.set $s0
            (i32x4.add (local.get $s0) (i32x4.dot_i16x8_s (local.get $v) (v128.load8x8_s (local.get $w0)))))
          (local.set $s1
            (i32x4.add (local.get $s1) (i32x4.dot_i16x8_s (local.get $v) (v128.load8x8_s (local.get $w1)))))
          (local.set $s2
            (i32x4.add (local.get $s2) (i32x4.dot_i16x8_s (local.get $v) (v128.load8x8_s (local.get $w2)))))
          (local.set $s3
            (i32x4.add (local.get $s3) (i32x4.dot_i16x8_s (local.get $v) (v128.load8x8_s (local.get $w3)))))
          (local.set $w0 (i32.add (local.get $w0) (i32.const 8)))
          (local.set $w1 (i32.add (local.get $w1) (i32.const 8)))
          (local.set $w2 (i32.add (local.get $w2) (i32.const 8)))
          (local.set $w3 (i32.add (local.get $w3) (i32.const 8)))
          (br_if $columns (i32.lt_u (local.tee $xj (i32.add (local.get $xj) (i32.const 16))) (local.get $x_end))))
        (call $store_sums
          (i32.add (local.get $y)
            (i32.shl (i32.add (i32.mul (local.get $i) (local.get $width)) (local.get $o)) (i32.const 2)))
          (f32x4.convert_i32x4_s (local.get $s0)) (f32x4.convert_i32x4_s (local.get $s1))
          (f32x4.convert_i32x4_s (local.get $s2)) (f32x4.convert_i32x4_s (local.get $s3)))
        (br_if $rows_of_x (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
      (br_if $rows_of_w
        (i32.lt_u (local.tee $o (i32.add (local.get $o) (i32.const 4))) (local.get $n_out)))))

  ;; W and x of 32-bit floating-point numbers
  (func (export "float32")
    (param $w i32) (param $n_out i32) (param $stride i32) (param $x i32) (param $n i32) (param $y i32)
    (local $o i32) (local $i i32) (local $width i32) (local $row_bytes i32) (local $x_end i32) (local $xj i32)
    (local $w0 i32) (local $w1 i32) (local $w2 i32) (local $w3 i32) (local $start i32)
    (local $v v128) (local $s0 v128) (local $s1 v128) (local $s2 v128) (local $s3 v128)
    (local.set $width (i32.and (i32.add (local.get $n_out) (i32.const 3)) (i32.const -4)))
    (local.set $row_bytes (i32.shl (local.get $stride) (i32.const 2)))
    (loop $rows_of_w
      (local.set $start (i32.add (local.get $w) (i32.mul (local.get $o) (local.get $row_bytes))))
      (local.set $xj (local.get $x))
      (local.set $i (i32.const 0))
      (loop $rows_of_x
        (local.set $w0 (local.get $start))
        (local.set $w1 (i32.add (local.get $w0) (local.get $row_bytes)))
        (local.set $w2 (i32.add (local.get $w1) (local.get $row_bytes)))
        (local.set $w3 (i32.add (local.get $w2) (local.get $row_bytes)))
        (local.set $s0 (v128.const i32x4 0 0 0 0))
        (local.set $s1 (v128.const i32x4 0 0 0 0))
        (local.set $s2 (v128.const i32x4 0 0 0 0))
        (local.set $s3 (v128.const i32x4 0 0 0 0))
        (local.set $x_end (i32.add (local.get $xj) (i32.shl (local.get $stride) (i32.const 2))))
        (loop $columns
          (local.set $v (v128.load (local.get $xj)))
          (local.set $s0 (f32x4.add (local.get $s0) (f32x4.mul (local.get $v) (v128.load (local.get $w0)))))
          (local.set $s1 (f32x4.add (local.get $s1) (f32x4.mul (local.get $v) (v128.load (local.get $w1)))))
          (local.set $s2 (f32x4.add (local.get $s2) (f32x4.mul (local.get $v) (v128.load (local.get $w2)))))
          (local.set $s3 (f32x4.add (local.get $s3) (f32x4.mul (local.get $v) (v128.load (local.get $w3)))))
          (local.set $w0 (i32.add (local.get $w0) (i32.const 16)))
          (local.set $w1 (i32.add (local.get $w1) (i32.const 16)))
          (local.set $w2 (i32.add (local.get $w2) (i32.const 16)))
          (local.set $w3 (i32.add (local.get $w3) (i32.const 16)))
          (br_if $columns (i32.lt_u (local.tee $xj (i32.add (local.get $xj) (i32.const 16))) (local.get $x_end))))
        (call $store_sums
          (i32.add (local.get $y)
            (i32.shl (i32.add (i32.mul (local.get $i) (local.get $width)) (local.get $o)) (i32.const 2)))
          (local.get $s0) (local.get $s1)
          (local.get $s2) (local.get $s3))
        (br_if $rows_of_x (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
      (br_if $rows_of_w
        (i32.lt_u (local.tee $o (i32.add (local.get $o) (i32.const 4))) (local.get $n_out))))))
