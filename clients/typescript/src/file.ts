// Files of Node.js as sources; a module of its own, so that browsers never load node:fs.
import { open } from "node:fs/promises";
import type { Source } from "./source.js";

/** A file that is open until close. */
export interface FileSource extends Source {
  close(): Promise<void>;
}

/** Opens a file for upload. Close it afterwards. */
export async function openFile(path: string): Promise<FileSource> {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    return { size, read: (start, end) => readFully(start, end), close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }

  async function readFully(start: number, end: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(end - start);
    for (let done = 0; done < bytes.length; ) {
      const { bytesRead } = await file.read(bytes, done, bytes.length - done, start + done);
      if (bytesRead === 0) return bytes.subarray(0, done); // shorter than it was
      done += bytesRead;
    }
    return bytes;
  }
}
