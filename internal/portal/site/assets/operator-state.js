// Queues, scanner, deliveries and uploads that need the operator.
import { call } from './api.js';
import { el, fill, facts, id, badge, time, duration, busy, confirm, errorNotice, notice, sentence } from './dom.js';
import { table } from './table.js';

const lanes = { gates: 'Gates', deletions: 'Deletions', rescans: 'Re-scans' };

/** Whether the engine works with next to no signatures. */
const bare = (s) => s.ok && !s.signature_version;

function scanner(s) {
  return el('section', { class: 'card', 'aria-labelledby': 'scanner-title' },
    el('div', { class: 'row apart' }, el('h3', { id: 'scanner-title' }, 'Scanner'), s.ok ? (bare(s) ? badge('Few signatures', 'warn') : badge('Answers', 'good')) : badge('Does not answer', 'bad')),
    el('p', {}, sentence(s.sentence)),
    facts(['Engine', s.engine && `${s.engine} ${s.engine_version ?? ''}`], ['Signatures', s.signature_version && id(s.signature_version)], ['Signatures of', s.signature_date && time(s.signature_date)],
      ['Age', s.signature_age_seconds !== undefined && s.signature_age_seconds !== null && duration(s.signature_age_seconds)]));
}

function process(p, at) {
  return el('section', { class: 'card', 'aria-labelledby': 'process-title' }, el('h3', { id: 'process-title' }, 'Process that answered'),
    facts(['Version', id(p.version)], ['Roles', p.roles?.join(', ')], ['Runs for', duration(p.uptime_seconds)], ['Started', time(p.started_at)], ['State of', time(at)]));
}

function deliveries(w, go) {
  return el('section', { class: 'card', 'aria-labelledby': 'deliveries-title' },
    el('div', { class: 'row apart' }, el('h3', { id: 'deliveries-title' }, 'Webhook deliveries'), w.dead ? badge(`${w.dead} given up`, 'warn') : badge('None given up', 'good')),
    facts(['Waiting', String(w.waiting)], ['Given up', String(w.dead)], ['Oldest waits', w.waiting ? duration(w.oldest_seconds) : null]),
    el('div', {}, el('button', { type: 'button', class: 'small', onclick: () => go('webhooks', '', { focus: true }) }, 'Webhooks')));
}

async function resume(upload, { said, again }) {
  const sure = await confirm({ title: 'Let this upload go on?', danger: false, yes: 'Resume',
    text: 'The gates that passed stay passed; the one that failed starts anew, with a whole deadline. Mend its cause first.' });
  if (!sure) return;
  try {
    const { data } = await call('POST', `/admin/uploads/${encodeURIComponent(upload.upload_id)}/resume`, { seat: 'admin', json: { org_id: upload.org_id }, idempotent: true });
    await again();
    said('good', 'The upload goes on.', el('p', {}, id(data.upload_id), ` is ${data.status} again, at the gate ${data.gate}.`));
  } catch (error) {
    said(errorNotice(error));
  }
}

function attention(uploads, tools) {
  const heading = el('h2', { id: 'attention-title', tabindex: '-1' }, 'Uploads that need you');
  if (!uploads.listed.length) return el('section', { class: 'stack', 'aria-labelledby': 'attention-title' }, heading, el('p', { class: 'empty' }, 'No upload is held or failed.'));
  const rows = uploads.listed.map((u) => [
    id(u.upload_id), id(u.org_id), badge(u.status === 'FAILED' ? 'Failed' : 'Held', u.status === 'FAILED' ? 'bad' : 'warn'), u.gate?.replaceAll('_', ' '),
    [sentence(u.message), el('br'), el('span', { class: 'small muted id' }, u.code)], time(u.since),
    u.status === 'FAILED' ? el('button', { type: 'button', class: 'small', 'aria-label': `Resume ${u.upload_id}`, onclick: (e) => busy(e.currentTarget, () => resume(u, tools)) }, 'Resume') : el('span', { class: 'small muted' }, 'tried again by itself'),
  ]);
  return el('section', { class: 'stack', 'aria-labelledby': 'attention-title' }, heading,
    el('p', { class: 'muted' }, `${uploads.failed} failed, ${uploads.held} held: a gate has had no answer yet.`, uploads.failed + uploads.held > uploads.listed.length ? ` ${uploads.listed.length} of them are listed.` : ''),
    table('Uploads that need you', ['Upload', 'Organization', 'State', 'Gate', 'Reason', 'Since', { name: 'Action', quiet: true }], rows).node);
}

export async function show(panel, { go, said }) {
  const { data } = await call('GET', '/admin/state', { seat: 'admin' });
  const again = () => show(panel, { go, said });
  const refresh = el('button', { type: 'button', class: 'small', 'data-refresh': true }, 'Refresh');
  refresh.addEventListener('click', () => busy(refresh, async () => {
    try {
      await again();
      panel.querySelector('[data-refresh]').focus();
      said('info', 'The state was read again.');
    } catch (error) {
      said(errorNotice(error));
    }
  }));
  const summary = !data.scanner.ok ? notice('bad', 'The scanner does not answer.', 'Uploads are held at the malware scan, and fail when its deadline passes.')
    : data.uploads.failed ? notice('warn', data.uploads.failed === 1 ? 'One upload failed and waits for you.' : `${data.uploads.failed} uploads failed and wait for you.`)
      : bare(data.scanner) ? notice('warn', 'The scanner has no full signature database: it protects from next to nothing.') : notice('good', 'Nothing waits for you.');
  fill(panel,
    el('div', { class: 'row apart' }, el('h2', {}, 'State'), refresh),
    summary,
    el('div', { class: 'grid' }, scanner(data.scanner), deliveries(data.webhooks, go), process(data.process, data.at)),
    attention(data.uploads, { said, again }),
    el('section', { class: 'stack', 'aria-labelledby': 'queues-title' }, el('h2', { id: 'queues-title' }, 'Queues'),
      table('Queues', ['Lane', { name: 'Waiting', num: true }, { name: 'Running', num: true }, { name: 'Oldest waits', num: true }],
        data.queues.map((q) => [lanes[q.lane] ?? q.lane, String(q.waiting), String(q.running), q.waiting ? duration(q.oldest_seconds) : '–'])).node,
      data.rescans_waiting ? el('p', { class: 'small muted' }, `${data.rescans_waiting} uploads wait for a re-scan that was asked for.`) : null));
}
