// An upload that a silent scanner let fail: the operator sees why (first visit) and lets it go on (second, when the scanner is back).
import { flow } from './frame.mjs'

const { UPLOAD, SCANNER } = process.env

await flow(async (b) => {
  const page = await b.open('/portal/operator', { seats: ['admin'] })
  const waiting = page.getByRole('table', { name: 'Uploads that need you' })
  await waiting.getByText(UPLOAD).waitFor()
  await waiting.getByText('scanner_unavailable').waitFor()
  if (SCANNER === 'silent') {
    await page.getByText('The scanner does not answer.').waitFor()
    await b.look(page, 'operator-failed')
    await b.walk(page, 'operator, failed')
    return
  }
  await page.getByRole('button', { name: `Resume ${UPLOAD}` }).press('Enter')
  const dialog = page.getByRole('dialog')
  await b.look(page, 'operator-resume')
  await dialog.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('status').getByText('The upload goes on.').waitFor()
  await page.getByText(`${UPLOAD} is PROCESSING again, at the gate malware_scan.`).waitFor()
})
