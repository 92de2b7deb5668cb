// SHA-256 of small things, on plain http too, where Web Crypto is not there.
import { sha256 } from './sha256.js';

export const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');

/** The SHA-256 of a text in UTF-8, in hex. */
export const textDigest = (text) => hex(sha256(new TextEncoder().encode(text)));
