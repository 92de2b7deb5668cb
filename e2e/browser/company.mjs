// Files of a solution company: handed in, paused, gone on with after a reload, refused, withdrawn with a receipt.
import { createHash, randomBytes } from 'node:crypto'
import { readFile, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assert, credentials, flow, org, url } from './frame.mjs'

const role = 'solution_company_upload'
const dir = await mkdtemp(join(tmpdir(), 'company-'))
const partSize = Number(process.env.PART_SIZE)

async function file(name, content) {
  const path = join(dir, name)
  await writeFile(path, content)
  return path
}

const asked = async (path, key = credentials[role]) => {
  const answer = await fetch(`${url}/api/v1/organizations/${org}${path}`, { headers: { 'x-api-key': key } })
  return { status: answer.status, body: await answer.json() }
}

// Text that the gates take, as long as wanted, without a line twice.
function prose(bytes) {
  let text = ''
  for (let n = 1; text.length < bytes; n++) text += `Line ${n}: pump ${n * 7} of the harbour was inspected in May and works as it did. ${randomBytes(12).toString('hex')}\n`
  return text.slice(0, bytes)
}

const choose = (page) => page.locator('#files')
const card = (page, name) => page.getByRole('listitem').filter({ has: page.getByRole('heading', { name, exact: true }) })
const badge = (page, name, text) => card(page, name).locator('.badge', { hasText: text }).waitFor()

async function consent(page) {
  await page.getByLabel('Your user id').fill('user-17')
  await page.getByLabel('Your e-mail address').fill('ada@example.org')
  await page.getByLabel('I have read the agreement').check()
}

async function handIn(page, ...paths) {
  await choose(page).setInputFiles(paths)
  await consent(page)
  await page.locator('#send').click()
}

await flow(async (b) => {
  const person = await b.person()
  let page = await b.open('/portal/company', { person })

  // Without a seat the page asks for a credential in place.
  await page.getByLabel('Credential').fill(credentials[role])
  await page.getByRole('button', { name: 'Sign in' }).last().click()
  await page.locator('#quota-figures').getByText('free').waitFor()
  await b.look(page, 'company')

  // Nothing is handed in without consent, and the agreement's digest is the text's.
  const report = await file('report.txt', prose(3000))
  const chooser = page.waitForEvent('filechooser') // long before the key: it takes the browser a moment to hand choosing over
  await b.tabTo(page, page.getByRole('button', { name: 'Drop files here, or choose them' }))
  await page.keyboard.press('Enter')
  await (await chooser).setFiles([report])
  const text = await page.getByLabel('Text of the agreement').textContent()
  assert.equal(await page.locator('#agreement-digest').textContent(), createHash('sha256').update(text).digest('hex'))
  await page.locator('#send').click()
  await page.getByText('Give your user id.').waitFor()
  assert.equal(await page.locator('#uploads > li').count(), 0)
  await b.look(page, 'company-chosen')
  await b.walk(page, 'company, files chosen')

  // Several files with one consent. A name is shown as the text that it is.
  const hostile = '<img src=x onerror=alert(1)> \u202Egpj.txt'
  const shown = hostile.replace('\u202E', '[U+202E]') // and what would turn it around is shown, not obeyed
  const dropped = await page.evaluateHandle(() => {
    const transfer = new DataTransfer()
    transfer.items.add(new File(['taken off again'], 'mistake.txt', { type: 'text/plain' }))
    transfer.items.add(new File([], 'empty.txt', { type: 'text/plain' }))
    return transfer
  })
  await page.locator('#choose').dispatchEvent('drop', { dataTransfer: dropped })
  await page.getByText('It is empty. It is left out.').waitFor()
  await page.getByRole('button', { name: 'Take off mistake.txt' }).click()
  const second = { name: hostile, mimeType: 'text/plain', buffer: Buffer.from(prose(2000)) }
  await choose(page).setInputFiles([second])
  await page.getByLabel('Kind of material').fill('inspection report')
  await consent(page)
  await page.getByRole('button', { name: 'Hand in 2 files' }).click()
  await badge(page, 'report.txt', 'Ready')
  await badge(page, shown, 'Ready')
  assert.equal(await card(page, shown).locator('img').count(), 0)
  const six = card(page, 'report.txt').locator('details') // closed by itself where the other file came in after this one was ready
  if (!(await six.evaluate((details) => details.open))) await six.locator('summary').click()
  await card(page, 'report.txt').getByText('Malware scan').waitFor()
  assert.deepEqual(await card(page, 'report.txt').locator('.gates li').evaluateAll((all) => all.map((li) => li.dataset.state)), Array(6).fill('passed'))
  await b.look(page, 'company-ready')
  await b.walk(page, 'company, uploads ready')

  // A file of several parts: paused, gone on with, then the page is loaded again in the middle, and the same file chosen again.
  const size = 6 * partSize + 1234
  const content = prose(size)
  const large = await file('large.txt', content)
  // The fourth part is not let through for now, so that the upload stands still in the middle.
  const wall = () => new Promise(() => {}) // never answered
  await page.route('**/parts/4', wall)
  const third = page.waitForResponse((r) => r.url().endsWith('/parts/3') && r.ok())
  await handIn(page, large)
  await third
  await card(page, 'large.txt').getByRole('button', { name: 'Pause' }).click()
  await badge(page, 'large.txt', 'Paused')
  await b.look(page, 'company-paused')
  const uploadId = (await card(page, 'large.txt').locator('.id').first().textContent()).trim()
  assert.equal((await asked(`/partner-uploads/${uploadId}`)).body.data.next_part_number, 4)
  const fourth = page.waitForRequest((r) => r.url().endsWith('/parts/4'))
  await card(page, 'large.txt').getByRole('button', { name: 'Resume' }).click()
  await fourth
  await page.close()
  page = await b.open('/portal/company', { person })
  await badge(page, 'large.txt', 'Interrupted')
  await b.look(page, 'company-interrupted')

  // Nothing that was kept here is a secret.
  const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }))
  for (const secret of [...Object.values(credentials), 'ada@example.org', 'user-17']) assert.ok(!kept.includes(secret), 'the browser keeps a secret')
  assert.ok(kept.includes(uploadId))

  // Another file of that length is found out; so is one of another length.
  const again = card(page, 'large.txt').locator('input[type=file]')
  await again.setInputFiles(await file('short.txt', 'short'))
  await card(page, 'large.txt').getByText('That is another file.').waitFor()
  await again.setInputFiles(await file('other.txt', prose(size)))
  await card(page, 'large.txt').getByText('its beginning differs').waitFor()
  await badge(page, 'large.txt', 'Stopped')
  // The fourth may have got through when its page was closed; what the service has is not sent again.
  const next = (await asked(`/partner-uploads/${uploadId}`)).body.data.next_part_number
  assert.ok(next === 4 || next === 5)
  const sent = []
  page.on('request', (r) => r.url().includes('/parts/') && sent.push(r.url().split('/').pop()))
  await again.setInputFiles(large)
  await badge(page, 'large.txt', 'Ready')
  assert.deepEqual([...new Set(sent)], ['1', '2', '3', '4', '5', '6', '7'].slice(next - 1))

  // A busy service and a lost answer are waited out: each part arrives once.
  let refused = 0
  let lost = 0
  await page.route('**/parts/2', async (route) => {
    if (refused++ === 0) return route.fulfill({ status: 429, headers: { 'Retry-After': '1' }, json: { code: 'rate_limited', message: 'too many requests', request_id: 'req_1' } })
    return route.fallback()
  })
  await page.route('**/parts/3', async (route) => {
    if (lost++ > 0) return route.fallback()
    await route.fetch() // the service has it, the browser never hears of it
    return route.abort('connectionreset')
  })
  b.tolerate(/parts\/3: net::ERR_CONNECTION_RESET/) // by this flow
  const busy = await file('busy.txt', prose(3 * partSize + 5))
  await handIn(page, busy)
  await badge(page, 'busy.txt', 'Ready')
  assert.ok(refused > 1 && lost > 1)

  // EICAR is refused, and the reason said.
  const eicar = await file('attachment.txt', ['X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR', '-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'].join(''))
  await handIn(page, eicar)
  await badge(page, 'attachment.txt', 'Refused')
  await card(page, 'attachment.txt').getByText('The malware scan found').first().waitFor()
  assert.equal(await card(page, 'attachment.txt').locator('.gates li[data-state=rejected] b').textContent(), 'Malware scan')
  await b.look(page, 'company-refused')

  // Cancelled before it is whole: its room is free again.
  await page.route('**/parts/2', wall)
  const held = page.waitForRequest((r) => r.url().endsWith('/parts/2'))
  await handIn(page, await file('dropped.txt', prose(3 * partSize)))
  await held
  await card(page, 'dropped.txt').getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Withdraw for good' }).click()
  await page.getByRole('heading', { name: 'Withdrawal receipt' }).waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).click()
  assert.equal((await asked('/quota')).body.data.reserved_bytes, 0)

  // Withdrawn by keyboard alone, with a receipt in both forms.
  const reportId = (await card(page, 'report.txt').locator('.id').first().textContent()).trim()
  await b.tabTo(page, card(page, 'report.txt').getByRole('button', { name: 'Withdraw' }))
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Reason').fill('superseded <b>now</b>')
  await b.look(page, 'company-withdraw')
  await b.tabTo(page, dialog.getByRole('button', { name: 'Withdraw for good' }))
  await page.keyboard.press('Enter')
  await dialog.getByRole('heading', { name: 'Withdrawal receipt' }).waitFor()
  await dialog.getByText('superseded <b>now</b>').waitFor()
  await b.look(page, 'company-receipt')
  const download = async (name) => {
    const [got] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('button', { name }).click()])
    return { name: got.suggestedFilename(), text: await readFile(await got.path(), 'utf8') }
  }
  const json = await download('Download as JSON')
  assert.equal(JSON.parse(json.text).upload_id, reportId)
  const signed = await download('Download signed')
  assert.match(signed.name, /\.jws$/)
  const keys = await download('Public keys')
  await dialog.getByRole('button', { name: 'Close' }).click()
  await page.locator('#uploads > li', { hasText: reportId }).locator('.badge', { hasText: 'Withdrawn' }).waitFor()
  assert.equal((await asked(`/ai-context/${reportId}`, credentials.ai_reader)).status, 404)
  assert.ok(!(await page.evaluate(() => JSON.stringify({ ...localStorage }))).includes('report.txt'), 'the name of what was withdrawn stays')
  await page.reload()
  await page.locator('#uploads > li', { hasText: reportId }).getByRole('button', { name: 'Receipt' }).click()
  await dialog.getByRole('heading', { name: 'Withdrawal receipt' }).waitFor()
  await dialog.getByRole('button', { name: 'Close' }).click()
  await writeFile(join(process.env.DOWNLOADS, 'receipt.jws'), signed.text)
  await writeFile(join(process.env.DOWNLOADS, 'keys.json'), keys.text)
  console.log(JSON.stringify({ sha256: createHash('sha256').update(content).digest('hex'), upload_id: uploadId }))
})
