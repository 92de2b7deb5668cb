// Hashes a file part by part, away from the page. At most one part, or 4 MiB of a larger one, is in memory.
// Takes {open: File} once, then {start, end} for each part in its order, then {whole: true}; answers in the same order.
import { sha256 } from './sha256.js';
import { hex } from './hash.js';

const block = 4 << 20;
const wholePart = 64 << 20; // parts up to here are read at once, so that Web Crypto can hash them
const whole = sha256.create();
let file;
let work = Promise.resolve();

async function part({ start, end }) {
  let digest;
  if (crypto.subtle && end - start <= wholePart) {
    const content = await file.slice(start, end).arrayBuffer();
    const own = crypto.subtle.digest('SHA-256', content);
    for (let at = 0; at < content.byteLength; at += block) {
      whole.update(new Uint8Array(content, at, Math.min(block, content.byteLength - at)));
      postMessage({ done: start + at });
    }
    digest = hex(new Uint8Array(await own));
  } else {
    const own = sha256.create();
    for (let at = start; at < end; at += block) {
      const piece = new Uint8Array(await file.slice(at, Math.min(at + block, end)).arrayBuffer());
      own.update(piece);
      whole.update(piece);
      postMessage({ done: at });
    }
    digest = hex(own.digest());
  }
  // soFar is the digest of the file up to here: by it a file that is chosen again is known to be the same one.
  postMessage({ part: digest, soFar: hex(whole.clone().digest()), end });
}

onmessage = ({ data }) => {
  if (data.open) {
    file = data.open;
    return;
  }
  work = work.then(() => (data.whole ? postMessage({ whole: hex(whole.digest()) }) : part(data)))
    .catch((error) => postMessage({ failed: error.name }));
};
