// SHA-256 piece by piece, where there is no node:crypto: Web Crypto wants the whole content at once.
import { sha256 } from "@noble/hashes/sha2";
import { bytesToHex } from "@noble/hashes/utils";

/** A digest that grows. hex ends it. */
export interface Digest {
  update(bytes: Uint8Array): void;
  hex(): string;
}

export function newDigest(): Digest {
  const digest = sha256.create();
  return {
    update: (bytes) => void digest.update(bytes),
    hex: () => bytesToHex(digest.digest()),
  };
}
