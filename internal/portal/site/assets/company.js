// The solution company's page: files of any size into custody, followed through the gates, and withdrawn.
import { call } from './api.js';
import { retrying } from './retry.js';
import { $, el, fill, id, bytes, duration, time, notice, errorNotice, busy, setError, sentence, copyButton } from './dom.js';
import { needSeat } from './shell.js';
import { askConsent } from './consent.js';
import { Transfer, largest } from './transfer.js';
import { follow, isTerminal, showGates, statusWords, whatNext } from './status.js';
import { noted, note, forget, noteWithdrawn } from './uploads.js';
import { withdraw, openReceipt } from './withdraw.js';
import { nameOf, visible } from './names.js';

const role = 'solution_company_upload';
const atOnce = 2; // transfers; the browser's connections are few
const perPage = 20; // uploads of earlier visits
const form = $('#hand-in');
const chooser = $('#files');
const drop = $('#choose');
const list = $('#uploads');
const said = $('#said');
let seat;
let consent;
const cards = [];

const announce = (text) => (said.textContent = text);

// ---- what a file is called and of what type it is

const types = {
  pdf: 'application/pdf', txt: 'text/plain', md: 'text/markdown', csv: 'text/csv', htm: 'text/html', html: 'text/html', eml: 'message/rfc822', rtf: 'application/rtf', epub: 'application/epub+zip',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  pptx: 'application/vnd.openxmlformats-officedocument.presentationml.presentation', odt: 'application/vnd.oasis.opendocument.text', ods: 'application/vnd.oasis.opendocument.spreadsheet',
  odp: 'application/vnd.oasis.opendocument.presentation', png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', tif: 'image/tiff', tiff: 'image/tiff', webp: 'image/webp',
  zip: 'application/zip', tar: 'application/x-tar', gz: 'application/gzip',
};

const mediaType = (file) => file.type || types[file.name.split('.').pop().toLowerCase()] || 'application/octet-stream';

/** The name as the service takes it: no path, no controls, 255 bytes. */
function cleanName(name) {
  let clean = name.replace(/[\x00-\x1f\x7f/\\]/g, '_') || 'unnamed';
  while (new TextEncoder().encode(clean).length > 255) clean = [...clean].slice(0, -1).join('');
  return clean;
}

// ---- one upload

class Card {
  status = null;
  transfer = null;
  #said = '';
  #pace = [];

  constructor({ filename, size, noted: known = null }) {
    this.filename = filename;
    this.size = size;
    this.note = known;
    this.uploadId = known?.upload_id ?? '';
    this.title = el('h3', { tabindex: '-1' }, filename ? nameOf(filename) : 'Withdrawn upload');
    this.badge = el('span', { class: 'badge' });
    this.about = el('p', { class: 'small muted' });
    this.progress = el('progress', { max: 1, value: 0, 'aria-label': `Progress of ${visible(filename)}` });
    this.figures = el('p', { class: 'small figures' });
    this.bar = el('div', { class: 'bar' }, this.progress, this.figures);
    this.word = el('div', { class: 'stack tight' });
    this.gates = el('ol', { class: 'gates' });
    this.details = el('details', {}, el('summary', {}, 'The six gates'), this.gates);
    const button = (text, does, kind = '') => el('button', { type: 'button', class: `small ${kind}`.trim(), onclick: (event) => does(event.currentTarget) }, text, el('span', { class: 'hidden-text' }, ` ${visible(filename) || this.uploadId}`));
    this.buttons = {
      pause: button('Pause', () => this.pause()),
      resume: button('Resume', () => this.resume()),
      choose: button('Choose the file again', () => this.chooseAgain()),
      cancel: button('Cancel', () => this.cancel(), 'danger'),
      receipt: button('Receipt', (b) => busy(b, () => openReceipt({ org: seat.org_id, seat: role, receiptId: this.note.receipt_id }))),
      withdraw: button('Withdraw', () => this.withdraw(), 'danger'),
      forget: button('Take off this list', () => this.remove(), 'quiet'),
    };
    this.copy = copyButton('Copy the upload id', () => this.uploadId, { class: 'small quiet' });
    this.node = el('li', { class: 'card upload' }, el('div', { class: 'row apart' }, this.title, this.badge), this.about, this.bar, this.word, this.details, el('div', { class: 'row' }, Object.values(this.buttons).slice(0, -1), this.copy, this.buttons.forget));
    this.again = el('input', { type: 'file', hidden: true, tabindex: '-1', 'aria-hidden': 'true' });
    this.again.addEventListener('change', () => {
      const [file] = this.again.files;
      this.again.value = '';
      if (file) this.continueWith(file);
    });
    this.node.append(this.again);
    this.draw();
  }

  // What it was left at by an earlier visit, or by a pause.
  get interrupted() {
    return !this.transfer && ['INITIATED', 'RECEIVING'].includes(this.status?.status);
  }

  draw() {
    const t = this.transfer;
    const moving = t && t.phase !== 'done';
    const words = {
      waiting: ['Waits for its turn', 'wait'], reserving: ['Asks for room', 'wait'], verifying: ['Reads the file again', 'wait'], sending: ['Sending', 'info'], completing: ['Hands over', 'info'],
      paused: ['Paused', 'warn'], stopped: ['Stopped', 'bad'], over: ['Ended', 'warn'], done: ['Handed over', 'info'],
    };
    const phase = this.status?.status === 'WITHDRAWN' || this.status?.status === 'WITHDRAWING' ? '' : moving ? t.phase : '';
    let [name, tone, meaning] = phase ? words[phase] : this.interrupted ? ['Interrupted', 'warn', ''] : this.status ? statusWords(this.status.status) : t ? words.done : this.note?.withdrawn ? statusWords('WITHDRAWN') : ['Asking …', 'wait', ''];
    this.badge.textContent = name;
    this.badge.dataset.tone = tone;
    fill(this.about, this.uploadId ? id(this.uploadId) : null, this.size ? `${this.uploadId ? ' · ' : ''}${bytes(this.size)}` : null, this.note?.at ? [' · ', time(this.note.at)] : null);
    this.#drawBar(phase);
    this.#drawWord(phase, meaning);
    this.copy.hidden = !this.uploadId;
    const gates = !phase && this.status?.gates?.some((g) => g.state !== 'pending');
    this.details.hidden = !gates;
    if (gates) showGates(this.gates, this.status);
    const ended = ['WITHDRAWN', 'WITHDRAWING'].includes(this.status?.status) || this.note?.withdrawn;
    this.#show({
      pause: Boolean(t?.active) || phase === 'waiting',
      // What was refused as it was asked for is not asked for again.
      resume: ['paused', 'stopped'].includes(phase) && !['file_unreadable', 'file_differs'].includes(t.error?.code) && !(!this.uploadId && [400, 403, 413].includes(t.error?.status)),
      choose: this.interrupted || (phase === 'stopped' && ['file_unreadable', 'file_differs'].includes(t.error?.code)),
      cancel: !ended && (this.interrupted || (phase !== '' && phase !== 'over')),
      receipt: Boolean(this.note?.receipt_id),
      withdraw: !ended && Boolean(this.uploadId) && (phase === '' || phase === 'over') && !this.interrupted && Boolean(this.status || phase === 'over'),
      forget: Boolean(this.note?.withdrawn) || this.lost || (phase === '' && isTerminal(this.status?.status)),
    });
    if (this.status && !phase && !this.interrupted && this.#said !== this.status.status && this.#said !== '') {
      announce(`${visible(this.filename)}: ${name}. ${this.status.failure?.message ?? ''}`);
      void showQuota();
    }
    if (this.status) this.#said = this.status.status;
  }

  // A button that goes away gives the focus to its upload.
  #show(which) {
    const had = this.node.contains(document.activeElement);
    for (const [name, button] of Object.entries(this.buttons)) button.hidden = !which[name];
    if (had && document.activeElement === document.body) this.title.focus();
  }

  #drawBar(phase) {
    const t = this.transfer;
    const shown = t && (t.active || phase === 'paused' || phase === 'stopped');
    const rest = this.interrupted ? this.status.received_bytes : null;
    this.bar.hidden = !shown && rest === null;
    if (this.bar.hidden) return;
    const done = shown ? t.bytes : rest;
    this.progress.value = this.size ? done / this.size : 0;
    this.progress.dataset.tone = phase === 'stopped' ? 'bad' : phase === 'paused' || rest !== null ? 'warn' : '';
    const text = [`${bytes(done)} of ${bytes(this.size)}`];
    if (phase === 'sending') {
      const left = this.#left(done);
      if (left) text.push(left);
    }
    if (phase === 'verifying') text.push('compares the file with what was sent');
    this.figures.textContent = text.join(', ');
    this.progress.setAttribute('aria-valuetext', text[0]);
  }

  #left(done) {
    const now = Date.now();
    this.#pace = [...this.#pace.filter(([at, was]) => now - at < 15_000 && was <= done), [now, done]];
    const [at, was] = this.#pace[0];
    const rate = (done - was) / ((now - at) / 1000);
    if (now - at < 1500 || rate <= 0) return '';
    return `${bytes(rate)} per second, about ${duration((this.size - done) / rate)} left`;
  }

  #drawWord(phase, meaning) {
    const t = this.transfer;
    if (phase && t?.hold) {
      fill(this.word, el('p', { class: 'small' }, `${sentence(t.hold.error.message)} It is tried again ${t.hold.until - Date.now() < 1500 ? 'now' : `in ${duration((t.hold.until - Date.now()) / 1000)}`}.`));
    } else if (phase && t?.error) {
      fill(this.word, errorNotice(t.error));
    } else if (this.interrupted) {
      const until = this.status.expires_at;
      fill(this.word, el('p', { class: 'small' }, 'The rest is still missing. Choose the same file again: it is compared with what was sent, and goes on from there.', until ? [' Until ', time(until), '.'] : null));
    } else if (phase === 'paused') {
      fill(this.word, el('p', { class: 'small' }, 'It goes on where it stopped, after this page is loaded again too.'));
    } else if (this.trouble) {
      fill(this.word, errorNotice(this.trouble), this.lost ? el('p', { class: 'small' }, 'This credential knows no such upload.') : null);
    } else if (!phase && this.status) {
      const next = whatNext(this.status);
      const failure = this.status.failure;
      fill(this.word, failure || next
        ? notice(this.status.status === 'REJECTED' ? 'bad' : 'warn', failure ? sentence(failure.message) : meaning, next || null)
        : el('p', { class: 'small muted' }, meaning, this.status.retained_until ? [' Withdrawn by itself ', time(this.status.retained_until), '.'] : null));
    } else {
      fill(this.word, this.note?.withdrawn ? el('p', { class: 'small muted' }, statusWords('WITHDRAWN')[2]) : null);
    }
  }

  begin(file, { request, sent } = {}) {
    this.status = null;
    this.#pace = [];
    let bar = 0;
    this.transfer = new Transfer({
      org: seat.org_id, seat: role, file, request, uploadId: this.uploadId, sent,
      changed: (t) => {
        if (t.uploadId && !this.uploadId) this.#reserved(t);
        // Bytes come often; the page is drawn ten times a second.
        if (t.phase === 'sending' && this.badge.textContent === 'Sending' && Date.now() - bar < 100) return;
        bar = Date.now();
        this.draw();
      },
    });
    this.draw();
    pump();
  }

  #reserved(t) {
    this.uploadId = t.uploadId;
    this.note = noted(seat.org_id, ['partner']).find((n) => n.upload_id === t.uploadId) ?? { upload_id: t.uploadId };
    if (!t.kept) announce('This browser keeps no notes: after a reload this upload can no longer go on.');
    void showQuota();
  }

  /** Sends, then follows. */
  async run() {
    const t = this.transfer;
    await t.run();
    if (t.phase === 'stopped') announce(`${visible(this.filename)}: stopped. ${t.error.message}`);
    if (t.phase === 'over' && t.error && this.transfer === t) { // the service says what became of it
      this.transfer = null;
      void this.watch();
    }
    if (t.phase === 'done' && this.transfer === t) {
      this.transfer = null;
      announce(`${visible(this.filename)} is handed over whole. The gates run.`);
      for (const other of cards) if (other.status?.status === 'READY') other.details.open = false;
      this.details.open = true;
      void this.watch();
    }
  }

  /** Follows until nothing more will happen. */
  async watch() {
    this.trouble = null;
    this.lost = false;
    this.watching?.abort();
    const watching = (this.watching = new AbortController());
    try {
      await follow(seat.org_id, this.uploadId, {
        seat: role, signal: watching.signal,
        changed: (status) => {
          this.status = status;
          this.size ||= status.size_bytes;
          if (status.status === 'WITHDRAWN') this.#gone();
          this.draw();
          // A file that somebody has to choose again first does not change by itself.
          if (this.interrupted) watching.abort(new DOMException('waits for its file', 'AbortError'));
        },
      });
    } catch (error) {
      if (watching.signal.aborted) return;
      this.trouble = error;
      this.lost = error.status === 404;
      this.draw();
    }
  }

  #gone() {
    noteWithdrawn(seat.org_id, this.uploadId);
    this.note = { ...this.note, withdrawn: true, ...noted(seat.org_id, ['partner']).find((n) => n.upload_id === this.uploadId) };
    this.filename = '';
    fill(this.title, 'Withdrawn upload');
  }

  pause() {
    this.transfer.pause();
    pump();
  }

  resume() {
    this.transfer.error = null;
    this.transfer.phase = 'waiting';
    this.draw();
    pump();
  }

  chooseAgain() {
    this.again.click();
  }

  continueWith(file) {
    if (file.size !== this.size) {
      announce('');
      fill(this.word, notice('bad', 'That is another file.', `It has ${file.size.toLocaleString()} bytes; this upload began with one of ${this.size.toLocaleString()}. Choose that one.`));
      this.title.focus();
      return;
    }
    announce(`${visible(this.filename)} goes on.`);
    this.begin(file, { sent: noted(seat.org_id, ['partner']).find((n) => n.upload_id === this.uploadId)?.sent });
  }

  matches(file) {
    return this.interrupted && this.note?.filename === cleanName(file.name) && this.size === file.size && this.note.modified === file.lastModified;
  }

  async cancel() {
    const t = this.transfer;
    if (!this.uploadId) {
      t?.end();
      this.remove();
      pump();
      return;
    }
    if (t?.active) t.pause();
    await this.withdraw('Cancel this upload?');
  }

  async withdraw(title) {
    await withdraw({
      org: seat.org_id, seat: role, uploadId: this.uploadId, filename: this.filename, title,
      begun: () => this.#end(),
      done: (answer) => {
        this.#end();
        this.watching?.abort();
        this.status = { status: 'WITHDRAWN', gates: [] };
        this.#gone();
        this.note.receipt_id = answer.withdrawal_receipt_id;
        note(seat.org_id, this.uploadId, { receipt_id: answer.withdrawal_receipt_id });
        this.draw();
        announce('Withdrawn. The receipt is shown.');
        void showQuota();
      },
    });
    this.title.focus();
    if (this.status?.status === 'WITHDRAWING') void this.watch();
  }

  #end() {
    this.transfer?.end();
    this.transfer = null;
    this.status ??= { status: 'WITHDRAWING', gates: [] };
    pump();
  }

  remove() {
    if (this.uploadId) forget(seat.org_id, this.uploadId);
    cards.splice(cards.indexOf(this), 1);
    this.node.remove();
    $('#none').hidden = cards.length > 0;
    $('#uploads-title').focus();
  }
}

/** Starts what waits, as far as there is room. */
function pump() {
  let free = atOnce - cards.filter((c) => c.transfer?.active).length;
  for (const card of [...cards].reverse()) { // the oldest first
    if (free <= 0) break;
    if (card.transfer?.phase !== 'waiting') continue;
    free--;
    void card.run().then(pump);
  }
}

function add(card, { first } = {}) {
  if (first) {
    cards.unshift(card);
    list.prepend(card.node);
  } else {
    cards.push(card);
    list.append(card.node);
  }
  $('#none').hidden = true;
  return card;
}

// ---- the storage allowance

async function showQuota() {
  try {
    const { data: q } = await retrying(() => call('GET', `/api/v1/organizations/${encodeURIComponent(seat.org_id)}/quota`, { seat: role }));
    const taken = q.used_bytes + q.reserved_bytes;
    const bar = $('#quota-bar');
    bar.max = Math.max(q.allowance_bytes, 1);
    bar.value = taken;
    $('#quota-figures').textContent = `${bytes(q.used_bytes)} used${q.reserved_bytes ? `, ${bytes(q.reserved_bytes)} reserved` : ''}, ${bytes(q.available_bytes)} of ${bytes(q.allowance_bytes)} free. ${q.upload_count === 1 ? 'One upload' : `${q.upload_count.toLocaleString()} uploads`}.`;
    available = q.available_bytes;
    checkRoom();
  } catch (error) {
    $('#quota-figures').textContent = `It cannot be read now: ${error.message}`;
  }
}

let available = Infinity;

// ---- choosing

let chosen = []; // {file, name, wrong}

function choose(files) {
  let resumed = 0;
  for (const file of files) {
    const waiting = cards.find((c) => c.matches(file));
    if (waiting) {
      waiting.continueWith(file);
      resumed++;
      continue;
    }
    if (chosen.some((c) => c.file.name === file.name && c.file.size === file.size && c.file.lastModified === file.lastModified)) continue;
    const wrong = file.size === 0 ? 'It is empty.' : file.size > largest ? `It is larger than ${bytes(largest)}.` : '';
    chosen.push({ file, name: cleanName(file.name), wrong });
  }
  showChosen();
  const good = chosen.filter((c) => !c.wrong).length;
  announce([resumed ? `${resumed === 1 ? 'One upload goes' : `${resumed} uploads go`} on.` : '', chosen.length ? `${good === 1 ? 'One file is' : `${good} files are`} chosen.` : ''].filter(Boolean).join(' '));
}

function showChosen() {
  fill($('#chosen'), chosen.map((c) => el('li', {},
    el('span', { class: 'what' }, nameOf(c.name), ' ', el('span', { class: 'small muted' }, `${bytes(c.file.size)}, ${mediaType(c.file)}`), c.wrong ? [' ', el('span', { class: 'error' }, `${c.wrong} It is left out.`)] : null),
    el('button', { type: 'button', class: 'small quiet', 'aria-label': `Take off ${visible(c.name)}`, onclick: () => {
      chosen = chosen.filter((o) => o !== c);
      showChosen();
      drop.focus();
    } }, 'Take off'))));
  const good = chosen.filter((c) => !c.wrong);
  $('#rest').hidden = good.length === 0;
  $('#send').textContent = good.length === 1 ? 'Hand in this file' : `Hand in ${good.length} files`;
  if (good.length) setError(drop, '');
  checkRoom();
}

function checkRoom() {
  const wanted = chosen.filter((c) => !c.wrong).reduce((sum, c) => sum + c.file.size, 0);
  fill($('#room'), wanted > available ? notice('warn', 'The storage allowance does not hold all of this.', `These files have ${bytes(wanted)}, ${bytes(available)} are free. Withdraw what is no longer needed, or ask the operator for more room.`) : null);
}

function onDrop(zone) {
  zone.addEventListener('dragover', (event) => {
    event.preventDefault();
    zone.dataset.over = '';
  });
  zone.addEventListener('dragleave', () => delete zone.dataset.over);
  zone.addEventListener('drop', (event) => {
    event.preventDefault();
    delete zone.dataset.over;
    // A folder has no bytes of its own to send.
    const files = [...event.dataTransfer.items].filter((i) => i.kind === 'file' && !i.webkitGetAsEntry?.()?.isDirectory).map((i) => i.getAsFile()).filter(Boolean);
    if (files.length < event.dataTransfer.items.length) setError(drop, 'Folders are left out: choose the files in them, or pack them into a ZIP.');
    choose(files);
  });
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const good = chosen.filter((c) => !c.wrong);
  if (!good.length) {
    setError(drop, 'Choose a file first.');
    drop.focus();
    return;
  }
  const agreed = consent.read();
  if (!agreed) return;
  const declared = {};
  for (const name of ['material_type', 'notes', 'importance']) {
    const value = form.elements[name].value.trim();
    if (value) declared[name] = value;
  }
  for (const { file, name } of good) {
    const card = add(new Card({ filename: name, size: file.size }), { first: true });
    card.begin(file, { request: { filename: name, content_type: mediaType(file), size_bytes: file.size, consent: agreed, ...declared } });
  }
  announce(good.length === 1 ? 'The upload has begun.' : `${good.length} uploads have begun.`);
  chosen = [];
  consent.withdraw();
  for (const name of ['material_type', 'notes']) form.elements[name].value = '';
  showChosen();
  $('#uploads-title').focus();
});

// ---- begin

async function earlier() {
  const rest = noted(seat.org_id, ['partner']);
  const more = $('#more');
  const next = () => {
    for (const n of rest.splice(0, perPage)) {
      const card = add(new Card({ filename: n.filename, size: n.size, noted: n }));
      if (!n.withdrawn) void card.watch();
    }
    more.hidden = rest.length === 0;
  };
  more.addEventListener('click', next);
  next();
}

async function begin() {
  seat = await needSeat(role, $('#seat'), 'Files are handed in with the upload credential of one organization.');
  fill($('#seat'), el('p', { class: 'small muted' }, 'Organization ', id(seat.org_id), ', credential ', id(seat.credential_id)));
  $('#work').hidden = false;
  consent = await askConsent($('#consent'), { purpose: 'every file in this list' });
  void showQuota();
  drop.addEventListener('click', () => chooser.click());
  chooser.addEventListener('change', () => {
    choose([...chooser.files]);
    chooser.value = '';
  });
  onDrop(drop);
  // A file that misses the place must not replace the page.
  for (const kind of ['dragover', 'drop']) window.addEventListener(kind, (event) => event.preventDefault());
  document.addEventListener('accession-session', (event) => {
    if (!event.detail) for (const card of cards) card.transfer?.pause();
  });
  await earlier();
}

begin().catch((error) => fill($('#seat'), errorNotice(error)));
