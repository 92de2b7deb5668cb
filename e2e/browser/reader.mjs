// An AI reader fetches a context: everything of it is text, the record of the serving is there, and its hash holds.
import { readFile } from 'node:fs/promises'
import { assert, credentials, flow, url } from './frame.mjs'

const { UPLOAD, CORRECTION, WITHHELD, FOREIGN } = process.env

await flow(async (b) => {
  const person = await b.person()
  await person.grantPermissions(['clipboard-read', 'clipboard-write'])
  const page = await b.open('/portal/reader', { person })

  // From signing in to the text, by keyboard alone.
  const credential = page.getByLabel('Credential')
  await credential.waitFor()
  await b.tabTo(page, credential)
  await page.keyboard.insertText(credentials.ai_reader)
  await page.keyboard.press('Enter')
  const field = page.getByLabel('Upload id')
  await field.waitFor()
  await b.look(page, 'reader-empty')
  await b.tabTo(page, field)
  await page.keyboard.press('Enter')
  await page.getByText('Give the id of an upload.').waitFor()
  await page.keyboard.insertText(` ${UPLOAD} `)
  await page.keyboard.press('Enter')
  const title = page.getByRole('heading', { name: 'Context of', exact: false })
  await title.waitFor()
  assert.ok(await title.evaluate((e) => e === document.activeElement), 'the focus is not on what was fetched')
  await page.getByRole('heading', { name: 'Evidence' }).waitFor()

  // The label, before everything that was submitted.
  const main = page.getByRole('main')
  const top = async (shown) => (await shown.boundingBox()).y
  assert.ok(await top(main.getByText('customer-submitted, unverified', { exact: true })) < await top(main.getByRole('region', { name: 'Summary' })), 'the label comes after the text')
  await main.getByText('Nobody has checked this').waitFor()

  // What was submitted is text: no element came of it, and nothing ran.
  await main.getByText('<img src=x onerror=', { exact: false }).first().waitFor()
  assert.equal(await main.locator('img, script, iframe, marquee, b.submitted').count(), 0)
  assert.equal(await page.evaluate(() => window.ran), undefined)
  assert.ok((await title.innerText()).includes('<b>note'), 'the file name is not shown as it is')
  assert.equal(await title.locator('bdi').count(), 1, 'a file name must not turn the text around it')

  const region = (name) => page.getByRole('region', { name, exact: true })
  await region('Signals').getByText('override').waitFor()
  await region('Signals').getByText('email').waitFor()
  await region('Excerpts').getByText('Excerpt 1').waitFor()
  await region('Size').getByText(/of at most [\d,]+ tokens/).waitFor()
  const provenance = region('Provenance')
  for (const text of [UPLOAD, 'ai_readable_controlled', 'captured', 'review-2026-118', CORRECTION]) await provenance.getByText(text).first().waitFor()
  assert.equal(await provenance.getByRole('link').count(), 0, 'a reference that somebody attached is not a link')
  const record = region('The record of this serving')
  await record.getByText('it holds').waitFor()
  const recordId = await provenance.getByText(/^rec_/).first().innerText()
  await record.getByText(recordId).waitFor()
  await b.look(page, 'reader')
  await b.walk(page, 'reader')

  // Older servings, page by page.
  const servings = page.getByRole('table', { name: /Servings/ })
  assert.equal(await servings.getByRole('rowheader').count(), 20)
  await page.getByRole('button', { name: 'Show more' }).click()
  await page.getByText('more are shown').waitFor()
  assert.equal(await servings.getByRole('rowheader').count(), 23)
  assert.equal(await servings.getByText('this one').count(), 1)

  // The whole as JSON: copied, and as a file.
  await b.glimpse(page, '[role=status]', 'Copied.', () => page.getByRole('button', { name: 'Copy as JSON' }).click())
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()))
  assert.equal(copied.upload_id, UPLOAD)
  assert.equal(copied.record_id, recordId)
  assert.ok(copied.context.text.includes(copied.context.canary))
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()])
  assert.deepEqual(JSON.parse(await readFile(await file.path(), 'utf8')), copied)
  await page.getByText('The text to put before a model').first().click()
  await page.getByText('=== BEGIN').waitFor()

  // A correction is another upload, one press away.
  await page.getByRole('button', { name: `Fetch the correction ${CORRECTION}` }).click()
  await provenance.getByText(CORRECTION).waitFor()
  await page.getByText('None. The original is never overwritten').waitFor()

  // What is not there, what is another's, and what is kept back.
  for (const [id, told] of [['upl_00000000000000000000000000', 'no such upload'], [FOREIGN, 'no such upload'], [WITHHELD, 'no AI reader gets anything'], ['not an id', null]]) {
    await field.fill(id)
    await page.getByRole('button', { name: 'Fetch the context' }).click()
    if (told) await page.getByRole('status').getByText(told).waitFor()
    else await page.locator('#upload-id[aria-invalid]').waitFor()
    assert.equal(await title.count(), 0, 'what was fetched before is still shown')
  }
  await b.look(page, 'reader-refused')

  // The credential is revoked elsewhere: the seat ends at once, the page says so and leads to signing in.
  const session = (await (await person.request.get('/portal/session')).json()).data
  const revoked = await fetch(`${url}/admin/tenant-keys/credentials/${session.seats[0].credential_id}/revoke`, {
    method: 'POST', headers: { authorization: `Bearer ${credentials.admin}`, 'idempotency-key': `revoke-${Date.now()}` },
  })
  assert.equal(revoked.status, 200)
  await field.fill(UPLOAD)
  await page.keyboard.press('Enter')
  await page.getByText('Your session has ended or the credential was revoked.').waitFor()
  await main.getByRole('link', { name: 'Sign in' }).click()
  await page.getByLabel('Credential').waitFor()
  assert.equal(new URL(page.url()).searchParams.get('next'), '/portal/reader')
})
