/** What is uploaded: its size, and any stretch of it again and again. Has to stay the same until the upload is complete. */
export interface Source {
  readonly size: number;
  /** The bytes from start to before end. */
  read(start: number, end: number): Promise<Uint8Array>;
}

/** A Blob (or File) or bytes as a Source. */
export function sourceOf(content: Source | Blob | Uint8Array): Source {
  if (content instanceof Uint8Array) {
    return { size: content.byteLength, read: async (start, end) => content.subarray(start, end) };
  }
  if (content instanceof Blob) {
    return { size: content.size, read: async (start, end) => new Uint8Array(await content.slice(start, end).arrayBuffer()) };
  }
  return content;
}
