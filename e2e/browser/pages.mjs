// Every page, as it is before anybody did anything: looked at, and walked through with Tab; first as a stranger, then signed in.
import { assert, credentials, flow } from './frame.mjs'

const pages = { home: '/', portal: '/portal', customer: '/portal/customer', company: '/portal/company', reader: '/portal/reader', operator: '/portal/operator', docs: '/docs', reference: '/docs/reference' }

await flow(async (b) => {
  // A page that is not there is a page, too.
  b.tolerate(/GET \S+\/portal\/nowhere: 404$/)
  const stranger = await b.person()
  const lost = await stranger.newPage()
  assert.equal((await lost.goto('/portal/nowhere')).status(), 404)
  await b.look(lost, 'nowhere')
  await lost.close()

  for (const seats of [[], ['solution_company_upload', 'ai_reader', 'admin']]) {
    const person = await b.person()
    for (const role of seats) await b.signIn(person, credentials[role])
    for (const [name, path] of Object.entries(pages)) {
      const called = seats.length ? `${name}-signed-in` : name
      const page = await b.open(path, { person })
      await page.waitForLoadState('networkidle')
      await page.getByRole('heading', { level: 1 }).waitFor()
      assert.equal(await page.getByRole('main').count(), 1, `${called}: one main`)
      assert.match(await page.title(), /accession/i, `${called}: its title`)
      assert.equal(await page.locator('html').getAttribute('lang'), 'en', `${called}: its language`)
      await b.walk(page, called)
      await b.look(page, called)
      await page.close()
    }
  }
})
