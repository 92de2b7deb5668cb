// Every page, as it is before anybody did anything: looked at, and walked through with Tab; first as a stranger, then signed in.
import { assert, credentials, flow } from './frame.mjs'

const pages = { home: '/', portal: '/portal', customer: '/portal/customer', company: '/portal/company', reader: '/portal/reader', operator: '/portal/operator', docs: '/docs', reference: '/docs/reference' }

// What stands on a page once its scripts are done with it; a stranger is asked to sign in where a seat is needed.
const done = {
  portal: (page) => page.getByRole('heading', { name: 'You are signed in' }),
  customer: (page) => page.getByText('Text and digest fit together'),
  company: (page) => page.locator('#quota-figures').getByText('free'),
  reader: (page) => page.getByLabel('Upload id'),
  operator: (page) => page.locator('[role=tabpanel]:not([hidden]):not([aria-busy])').getByRole('heading', { name: 'Queues' }),
}
const open = {
  docs: (page) => page.getByRole('searchbox', { name: 'Find a heading' }),
  reference: (page) => page.locator('.operation').first(),
}

async function settled(page, name, signedIn) {
  if (open[name]) await open[name](page).waitFor()
  if (!done[name]) return
  await (signedIn ? done[name](page) : page.getByLabel(/^(Credential|Admin token)$/)).waitFor()
  const header = page.getByRole('banner')
  if (signedIn) await header.getByRole('button', { name: 'Sign out' }).waitFor()
  else if (name !== 'portal') await header.getByRole('link', { name: 'Sign in' }).waitFor()
}

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
      await page.waitForLoadState('networkidle') // a script that is held up is idle, too
      await settled(page, name, seats.length > 0)
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
