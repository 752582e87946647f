// Normal numbers by counter, so that each weight is independent of the width: a wider network contains the neurons of
// a narrower one. Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror & Shaw 2011), then Box–Muller.

const PARITY = 0x1bd11bda;
const TWO_32 = 2 ** 32;

// Two words of 32 bits for a key and a counter of two words each, written to `out`.
export function threefry(key0, key1, count0, count1, out) {
  const key2 = key0 ^ key1 ^ PARITY;
  let a = (count0 + key0) | 0;
  let b = (count1 + key1) | 0;
  for (let group = 1; group <= 5; group++) {
    if (group & 1) {
      a = (a + b) | 0; b = ((b << 13) | (b >>> 19)) ^ a;
      a = (a + b) | 0; b = ((b << 15) | (b >>> 17)) ^ a;
      a = (a + b) | 0; b = ((b << 26) | (b >>> 6)) ^ a;
      a = (a + b) | 0; b = ((b << 6) | (b >>> 26)) ^ a;
    } else {
      a = (a + b) | 0; b = ((b << 17) | (b >>> 15)) ^ a;
      a = (a + b) | 0; b = ((b << 29) | (b >>> 3)) ^ a;
      a = (a + b) | 0; b = ((b << 16) | (b >>> 16)) ^ a;
      a = (a + b) | 0; b = ((b << 24) | (b >>> 8)) ^ a;
    }
    const at = group % 3;
    a = (a + (at === 0 ? key0 : at === 1 ? key1 : key2)) | 0;
    b = (b + (at === 0 ? key1 : at === 1 ? key2 : key0) + group) | 0;
  }
  out[0] = a >>> 0;
  out[1] = b >>> 0;
}

// Independent N(0, 1) numbers as a matrix, row by row: entries 2p and 2p + 1 of row k come from the counter (k, p)
// under the key (seed, tensor). Rows are `stride` apart.
export function normals(seed, tensor, rows, columns, found = new Float64Array(rows * columns), stride = columns) {
  const words = new Float64Array(2);
  for (let row = 0; row < rows; row++) {
    for (let column = 0, at = row * stride; column < columns; column += 2, at++) {
      threefry(seed, tensor, row, column >> 1, words);
      const radius = Math.sqrt(-2 * Math.log((words[0] + 0.5) / TWO_32));
      const angle = (2 * Math.PI * words[1]) / TWO_32;
      found[at] = radius * Math.cos(angle);
      if (column + 1 < columns) found[++at] = radius * Math.sin(angle);
    }
  }
  return found;
}
