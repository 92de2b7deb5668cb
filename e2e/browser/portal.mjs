// Home, sign-in and sign-out: what is held where, what a wrong credential is told, and that nothing of a credential stays in the browser.
import { assert, credentials, flow } from './frame.mjs'

await flow(async (b) => {
  const person = await b.person()

  // Home leads to the three doors; a theme that is chosen stays.
  let page = await b.open('/', { person })
  for (const [door, path] of [['Customer', '/portal/customer'], ['Solution company', '/portal/company'], ['AI reader', '/portal/reader']]) {
    assert.equal(await page.getByRole('main').getByRole('link', { name: new RegExp(`^${door}`) }).getAttribute('href'), path)
  }
  await b.look(page, 'home')
  await b.walk(page, 'home')
  const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  await page.emulateMedia({ colorScheme: 'light' })
  const light = await paper()
  await page.getByRole('button', { name: 'Theme: auto' }).click()
  await page.getByRole('button', { name: 'Theme: light' }).click()
  await page.getByRole('button', { name: 'Theme: dark' }).waitFor()
  assert.notEqual(await paper(), light, 'dark looks like light')
  await page.goto('/portal/reader')
  await page.getByRole('button', { name: 'Theme: dark' }).click() // back to the system's
  await page.getByRole('button', { name: 'Theme: auto' }).waitFor()
  await page.close()

  // The first thing that Tab reaches leads past the header.
  page = await b.open('/portal', { person })
  const field = page.getByLabel('Credential')
  await field.waitFor()
  await page.keyboard.press('Tab')
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content')
  await page.keyboard.press('Enter')
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main')
  await b.look(page, 'sign-in')
  await b.walk(page, 'sign-in')

  // Nothing, and something wrong: both are said beside the field, which has the focus.
  assert.equal(await field.getAttribute('type'), 'password')
  assert.equal(await field.getAttribute('autocomplete'), 'off')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Paste the credential first.').waitFor()
  for (const wrong of ['nothing like one', credentials.ai_reader.slice(0, -4) + 'AAAA']) {
    await field.fill(wrong)
    await page.keyboard.press('Enter')
    await page.getByText('does not accept this credential').waitFor()
    assert.equal(await field.getAttribute('aria-invalid'), 'true')
    assert.ok(await field.evaluate((e) => e === document.activeElement && document.getElementById(e.getAttribute('aria-describedby').split(' ').at(-1)).textContent))
  }
  await b.look(page, 'sign-in-refused')

  // By keyboard alone; a second credential adds a seat.
  await field.fill('')
  await page.evaluate(() => document.activeElement.blur())
  await b.tabTo(page, field)
  await page.keyboard.insertText(`  ${credentials.ai_reader}\n`) // as it is pasted
  await page.keyboard.press('Enter')
  const seats = page.getByRole('region', { name: 'You are signed in' })
  await seats.getByRole('heading', { name: 'AI reader' }).waitFor()
  await seats.getByText('harbour').waitFor()
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'You are signed in')
  const before = await person.cookies()
  await page.getByLabel('Credential').fill(credentials.admin)
  await page.keyboard.press('Enter')
  await seats.getByRole('heading', { name: 'Operator' }).waitFor()
  assert.equal(await seats.getByRole('article').count(), 2)
  const after = await person.cookies()
  assert.equal(after.length, 1)
  assert.ok(after[0].httpOnly && after[0].sameSite === 'Strict')
  assert.notEqual(after[0].value, before[0].value)
  await b.look(page, 'signed-in')
  await b.walk(page, 'signed-in')

  // Nothing that scripts can read holds a credential or the cookie.
  const kept = await page.evaluate(async () => JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, await indexedDB.databases(), await caches.keys(), document.documentElement.outerHTML,
    [...document.querySelectorAll('input')].map((i) => i.value)]))
  for (const secret of [...Object.values(credentials), after[0].value]) assert.ok(!kept.includes(secret), 'the page keeps a secret')

  // It holds after a reload, and lasts until somebody signs out; then the old cookie is worth nothing.
  await page.reload()
  await seats.getByRole('heading', { name: 'Operator' }).waitFor()
  await page.getByRole('banner').getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('banner').getByRole('button', { name: 'Sign out' }).waitFor({ state: 'detached' })
  await field.waitFor()
  assert.equal((await person.cookies()).length, 0)
  const old = await person.request.get('/portal/session', { headers: { cookie: `${after[0].name}=${after[0].value}` } })
  assert.equal(old.status(), 401)

  // A page that needs a seat asks for it in place, says so if the credential is another's, and goes on.
  await page.goto('/portal/reader')
  await page.getByLabel('Credential').fill(credentials.solution_company_upload)
  await page.keyboard.press('Enter')
  await page.getByText('it is of another role').waitFor()
  await page.getByLabel('Credential').fill(credentials.ai_reader)
  await page.keyboard.press('Enter')
  await page.getByLabel('Upload id').waitFor()

  // After signing in one is led to the page that was asked for, and to none but the portal's own.
  for (const [next, to] of [['/portal/reader', '/portal/reader'], ['https://other.example/', '/portal'], ['//other.example/portal/reader', '/portal'], ['javascript:alert(1)', '/portal']]) {
    const other = await b.person()
    const tab = await b.open(`/portal?next=${encodeURIComponent(next)}`, { person: other })
    await tab.getByLabel('Credential').fill(credentials.ai_reader)
    await tab.keyboard.press('Enter')
    await (to === '/portal' ? tab.getByRole('heading', { name: 'You are signed in' }) : tab.getByLabel('Upload id')).waitFor()
    assert.equal(new URL(tab.url()).pathname, to)
    await other.close()
  }
})
