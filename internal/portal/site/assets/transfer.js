// One file on its way into custody: reserve, parts in order, complete. It can be paused, and goes on after a reload with the same file.
import { ApiError, call, freshKey } from './api.js';
import { retrying } from './retry.js';
import { statusPath, uploadsPath } from './status.js';
import { note } from './uploads.js';

const stall = 60_000; // ms without a byte taken, or without an answer after the last one
export const largest = 8589934592; // bytes; the contract's

const aborted = () => new DOMException('stopped', 'AbortError');
const own = (code, message) => new ApiError({ code, message });

function base64(hex) {
  return btoa(String.fromCharCode(...hex.match(/../g).map((pair) => parseInt(pair, 16))));
}

/** Sends one part; fetch does not tell how far it is, so XMLHttpRequest. Errors: ApiError, AbortError. */
function putPart(path, body, { seat, key, sha256, signal, progress }) {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(aborted());
      return;
    }
    const x = new XMLHttpRequest();
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => x.abort(), stall);
    };
    const stop = () => x.abort();
    signal.addEventListener('abort', stop);
    x.upload.onprogress = (event) => {
      alive();
      progress(event.loaded);
    };
    x.onloadend = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      if (x.status >= 200 && x.status < 300) {
        resolve();
        return;
      }
      if (signal.aborted) {
        reject(aborted());
        return;
      }
      if (x.status === 0) {
        reject(own('network', 'The service did not answer. Look at your connection.'));
        return;
      }
      let said = {};
      try {
        said = JSON.parse(x.responseText);
      } catch { /* not the service's own answer */ }
      reject(new ApiError({
        status: x.status, code: said.code ?? 'unexpected_answer', requestId: said.request_id, details: said.details,
        message: said.message ?? `Something between this page and the service answered with status ${x.status}.`,
        retryAfter: Number(x.getResponseHeader('Retry-After')) || 0,
      }));
    };
    x.open('PUT', path);
    x.setRequestHeader('X-Accession-Seat', seat);
    x.setRequestHeader('Idempotency-Key', key);
    x.setRequestHeader('Content-Type', 'application/octet-stream');
    x.setRequestHeader('Content-Digest', `sha-256=:${base64(sha256)}:`);
    alive();
    x.send(body);
  });
}

/** The file's digests, made in a worker. Parts are asked for in their order, each once. */
class Digests {
  #worker = new Worker(new URL('./hash-worker.js', import.meta.url), { type: 'module' });
  #waiting = [];
  #broken = null;

  constructor(file, progress) {
    this.#worker.onmessage = ({ data }) => {
      if (data.done !== undefined) {
        progress(data.done);
        return;
      }
      const next = this.#waiting.shift();
      if (data.failed) next?.reject(own('file_unreadable', 'The file can no longer be read: it was moved, changed or taken away. Choose it again.'));
      else next?.resolve(data);
    };
    this.#worker.onerror = () => {
      this.#broken = own('worker_failed', 'The part of this page that computes digests did not start. Load the page again.');
      for (const next of this.#waiting.splice(0)) next.reject(this.#broken);
    };
    this.#worker.postMessage({ open: file });
  }

  ask(question) {
    if (this.#broken) return Promise.reject(this.#broken);
    const answer = new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
    answer.catch(() => {}); // it may be asked for ahead and looked at later, or never
    this.#worker.postMessage(question);
    return answer;
  }

  end() {
    this.#worker.terminate();
  }
}

/**
 * phase: waiting, reserving, verifying, sending, completing, done, paused, stopped (error says why), over (gone at the service).
 * bytes: done in this phase, of the file from its beginning. hold: {error, until} while something is tried again.
 */
export class Transfer {
  phase = 'waiting';
  bytes = 0;
  error = null;
  hold = null;
  #parts = []; // promises of digests, by part
  #digests = null;
  #whole = null;
  #stop = null;
  #key = freshKey();

  /** request: the body of initiate, for a new upload. uploadId and sent: of the note, for one that goes on. changed(transfer) is told of everything. */
  constructor({ org, seat, file, request, uploadId = '', sent, changed }) {
    Object.assign(this, { org, seat, file, request, uploadId, sent, changed });
  }

  get active() {
    return ['reserving', 'verifying', 'sending', 'completing'].includes(this.phase);
  }

  /** Runs until the file is handed over whole, or it is paused or stopped. Never throws. */
  async run() {
    if (this.active || this.phase === 'done') return;
    this.#stop = new AbortController();
    this.error = null;
    try {
      if (!this.uploadId) await this.#reserve();
      await this.#deliver();
      this.#release();
      this.#say('done');
    } catch (error) {
      this.hold = null;
      if (this.#stop.signal.aborted) {
        this.#say(this.phase === 'over' ? 'over' : 'paused');
        return;
      }
      this.error = error;
      if (['file_unreadable', 'file_differs', 'worker_failed'].includes(error.code)) this.#release();
      this.#say(['reservation_expired', 'upload_not_receiving', 'upload_not_found'].includes(error.code) ? 'over' : 'stopped');
    }
  }

  pause() {
    if (this.active) this.#stop.abort(aborted());
    else if (this.phase === 'waiting') this.#say('paused');
  }

  /** Ends it here for good; what the service has is withdrawn by whoever calls this. */
  end() {
    this.phase = 'over';
    this.#stop?.abort(aborted());
    this.#release();
  }

  #release() {
    this.#digests?.end();
    this.#digests = null;
    this.#parts = [];
    this.#whole = null;
  }

  #say(phase, bytes = this.bytes) {
    if (this.phase === 'over' && phase !== 'over') return;
    this.phase = phase;
    this.bytes = bytes;
    this.changed(this);
  }

  #again(attempt) {
    return retrying(attempt, {
      signal: this.#stop.signal,
      notify: (error, wait) => {
        this.hold = error ? { error, until: Date.now() + wait } : null;
        this.changed(this);
      },
    });
  }

  async #reserve() {
    this.#say('reserving', 0);
    const { data } = await this.#again(() => call('POST', `${uploadsPath(this.org)}/initiate`, {
      seat: this.seat, json: this.request, idempotent: this.#key, signal: this.#stop.signal,
    }));
    this.uploadId = data.upload_id;
    this.kept = note(this.org, this.uploadId, {
      kind: 'partner', filename: this.request.filename, size: this.file.size, modified: this.file.lastModified, at: new Date().toISOString(),
    });
    this.reserved?.(this);
  }

  async #deliver() {
    const signal = this.#stop.signal;
    const { data: status } = await this.#again(() => call('GET', `${statusPath(this.org, this.uploadId)}?include_gates=false`, { seat: this.seat, signal }));
    if (['EXPIRED', 'WITHDRAWING', 'WITHDRAWN'].includes(status.status)) {
      throw own('upload_not_receiving', 'The service no longer takes parts of this upload. Upload the file anew.');
    }
    if (status.status !== 'INITIATED' && status.status !== 'RECEIVING') return; // it is whole: an answer was lost
    if (status.size_bytes !== this.file.size) {
      throw own('file_differs', `This file has ${this.file.size.toLocaleString()} bytes, the upload began with one of ${status.size_bytes.toLocaleString()}. Choose that one.`);
    }
    const size = status.part_size_bytes;
    const count = Math.ceil(this.file.size / size);
    let next = Math.max(status.next_part_number, 1);
    const declared = [];
    const reads = next > this.#parts.length + 1; // what was sent before a reload is read again, and compared
    this.#say(reads ? 'verifying' : 'sending', reads ? 0 : (next - 1) * size);
    for (let number = 1; number <= count; number++) {
      const digest = await this.#digest(number, size);
      signal.throwIfAborted();
      if (this.sent?.parts === number && this.sent.sha256 !== digest.soFar) {
        throw own('file_differs', 'This is not the file that the upload began with: its beginning differs. Choose that one, or cancel and upload this one anew.');
      }
      declared.push({ part_number: number, sha256: digest.part, size_bytes: digest.end - (number - 1) * size });
      if (number < next) continue;
      if (number < count) void this.#digest(number + 1, size); // while this part is on its way
      next = await this.#send(number, size, digest);
      this.sent = { parts: number, sha256: digest.soFar };
      note(this.org, this.uploadId, { sent: this.sent });
      this.#say('sending', digest.end);
    }
    this.#whole ??= this.#digests.ask({ whole: true });
    const { whole } = await this.#whole;
    this.#say('completing', this.file.size);
    await this.#again(() => call('POST', `${statusPath(this.org, this.uploadId)}/complete`, {
      seat: this.seat, signal, json: { parts: declared, client_file_sha256: whole }, idempotent: `${this.uploadId}-complete`,
    }));
    note(this.org, this.uploadId, { sent: undefined, whole: true });
  }

  #digest(number, size) {
    this.#digests ??= new Digests(this.file, (done) => {
      if (this.phase === 'verifying') this.#say('verifying', done);
    });
    for (let n = this.#parts.length + 1; n <= number; n++) {
      this.#parts.push(this.#digests.ask({ start: (n - 1) * size, end: Math.min(n * size, this.file.size) }));
    }
    return this.#parts[number - 1];
  }

  /** Sends a part until it is there; answers the number of the next one that the service wants. */
  async #send(number, size, digest) {
    const start = (number - 1) * size;
    this.#say('sending', start);
    const path = `${statusPath(this.org, this.uploadId)}/parts/${number}`;
    try {
      await this.#again(() => putPart(path, this.file.slice(start, digest.end), {
        seat: this.seat, key: `${this.uploadId}-part-${number}`, sha256: digest.part, signal: this.#stop.signal,
        progress: (sent) => this.#say('sending', start + sent),
      }));
    } catch (error) {
      if (error.code === 'part_conflict') throw own('file_differs', 'The service has other bytes for a part of this upload: the file was changed. Cancel, and upload the file anew.');
      const wanted = error.code === 'part_out_of_order' && (error.details?.next_part_number ?? error.details?.last_part_number + 1);
      if (!(wanted > number)) throw error; // else another window has sent it meanwhile
      return wanted;
    }
    return number + 1;
  }
}
