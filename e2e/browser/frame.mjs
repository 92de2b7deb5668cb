// What every flow stands on: one Chromium, pages that are watched, and the checks that each page must pass.
// A flow is `await flow(async (b) => { … })`; it ends with exit code 1 if anything is wrong, also what it did not look for.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { chromium } from 'playwright-core'

export { assert }

const given = (name) => process.env[name] || assert.fail(`${name} is not set; the Go test that runs this flow sets it`)

export const url = given('ACCESSION_URL')
export const org = process.env.ACCESSION_ORG
// Credentials by seat; only those that the test issued.
export const credentials = {
  admin: process.env.ACCESSION_ADMIN_TOKEN,
  solution_company_upload: process.env.ACCESSION_KEY,
  ai_reader: process.env.ACCESSION_READER_KEY,
}

const screenshots = given('SCREENSHOTS')
const name = basename(process.argv[1], '.mjs')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
export const widths = [360, 1440]
export const schemes = ['light', 'dark']
// A condition is waited for this long, in milliseconds; a loaded machine is slow.
const patience = 120_000

export async function flow(work) {
  await mkdir(screenshots, { recursive: true })
  const browser = await chromium.launch({
    executablePath: given('CHROMIUM'),
    chromiumSandbox: process.getuid() !== 0,
    // No name but the service's is found, so nothing can leave this machine.
    args: ['--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost'],
  })
  const b = new Browsing(browser)
  try {
    await work(b)
    b.settle()
  } catch (error) {
    console.error(error.stack ?? error)
    if (b.troubles.length) console.error(`\nAlso seen:\n  ${b.troubles.join('\n  ')}`)
    await b.photographRuins()
    process.exitCode = 1
  } finally {
    await browser.close()
  }
}

class Browsing {
  troubles = [] // what pages did that none may do
  #tolerated = []
  #contexts = []

  constructor(browser) {
    this.browser = browser
  }

  // A person's browser of their own: cookies and storage are not shared with another's.
  async person({ width = 1440, scheme = 'light', ...more } = {}) {
    const context = await this.browser.newContext({
      baseURL: url, viewport: { width, height: 900 }, colorScheme: scheme, reducedMotion: 'reduce', locale: 'en-GB', timezoneId: 'UTC', ...more,
    })
    context.setDefaultTimeout(patience)
    this.#contexts.push(context)
    this.#watch(context)
    // Where this is said in the console too, it is said twice; a violation inside a worker is in the console alone.
    await context.addInitScript(() => document.addEventListener('securitypolicyviolation', (e) =>
      console.error(`Content-Security-Policy: ${e.violatedDirective} refused ${e.blockedURI || e.sample}`)))
    return context
  }

  // A new page at path, in a new person's browser or in the one given. seats: the roles to be signed in with.
  async open(path, { person, width, scheme, seats = [] } = {}) {
    person ??= await this.person({ width, scheme })
    for (const role of seats) await this.signIn(person, credentials[role])
    const page = await person.newPage()
    const answer = await page.goto(path, { waitUntil: 'load' })
    assert.ok(answer.ok(), `${path} is ${answer.status()}`)
    return page
  }

  // Signs a person in without the page of it; `/portal` has a flow of its own.
  async signIn(person, credential) {
    assert.ok(credential, 'there is no such credential; the Go test issues it')
    const answer = await person.request.post('/portal/session', { data: { credential } })
    assert.equal(answer.status(), 200, `sign-in: ${await answer.text()}`)
    return (await answer.json()).data
  }

  // What matches is no trouble from here on: what a flow does on purpose. Say why beside the call.
  tolerate(pattern) {
    this.#tolerated.push(pattern)
  }

  // Both widths and both colour schemes of what the page shows now: no serious finding of axe, nothing wider than the
  // window, a screenshot of the whole page called `called`.
  async look(page, called, { widths: wanted = widths, schemes: coloured = schemes } = {}) {
    for (const width of wanted) {
      for (const scheme of coloured) {
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: 'reduce' })
        await page.setViewportSize({ width, height: 900 })
        await this.shot(page, `${called}-${width}-${scheme}`)
        await this.#accessible(page, `${called} at ${width}, ${scheme}`)
        await this.#fits(page, `${called} at ${width}`)
      }
    }
  }

  async shot(page, called) {
    await page.screenshot({ path: join(screenshots, `${called}.png`), fullPage: true, animations: 'disabled' })
  }

  // What act makes a page show for a moment only, such as "Copied.". The page itself looks for it: this process may be held up for longer.
  async glimpse(page, selector, text, act) {
    await page.evaluate(([selector, text]) => {
      window.glimpsed = false
      new MutationObserver(() => { window.glimpsed ||= [...document.querySelectorAll(selector)].some((e) => e.textContent === text) })
        .observe(document.body, { subtree: true, childList: true, characterData: true })
    }, [selector, text])
    await act()
    await page.waitForFunction(() => window.glimpsed)
  }

  // Presses Tab until target (a locator) has the focus.
  async tabTo(page, target, { most = 150 } = {}) {
    for (let pressed = 0; pressed < most; pressed++) {
      if (await target.evaluate((element) => element === document.activeElement)) return
      await page.keyboard.press('Tab')
    }
    assert.fail(`${target} is not reached with ${most} presses of Tab`)
  }

  // Walks once through the page with Tab: all that can be operated is reached, shows that it has the focus, and lets go again.
  async walk(page, called) {
    await page.evaluate(() => { document.activeElement?.blur(); window.getSelection()?.removeAllRanges(); window.scrollTo(0, 0) })
    const wanted = await page.evaluate(operable)
    const seen = new Set()
    const dim = []
    for (let pressed = 0; pressed < wanted.length + 100 && seen.size < wanted.length; pressed++) {
      await page.keyboard.press('Tab')
      const at = await page.evaluate(focused)
      if (at === null) continue // the browser's own controls, or the page's beginning
      if (!at.shown && !dim.includes(at.label)) dim.push(at.label)
      if (at.number !== null) seen.add(at.number)
    }
    await page.evaluate(() => document.activeElement?.blur()) // a picture taken next shows the page, not the walk
    const missed = wanted.filter((_, i) => !seen.has(String(i)))
    if (missed.length) this.troubles.push(`${called}: Tab does not reach ${missed.join(', ')}`)
    if (dim.length) this.troubles.push(`${called}: no visible focus on ${dim.join(', ')}`)
  }

  // Says what pages did wrong until now.
  settle() {
    const left = this.troubles.filter((trouble) => !this.#tolerated.some((pattern) => pattern.test(trouble)))
    this.troubles = []
    assert.equal(left.length, 0, `\n  ${left.join('\n  ')}`)
  }

  async photographRuins() {
    let number = 0
    for (const context of this.#contexts) {
      for (const page of context.pages()) {
        const file = `failed-${name}-${++number}`
        await this.shot(page, file).then(() => console.error(`screenshot ${join(screenshots, file)}.png of ${page.url()}`), () => {})
      }
    }
  }

  #watch(context) {
    const at = (where) => where.page?.()?.url() ?? ''
    context.on('request', (request) => {
      const to = new URL(request.url())
      if (!['data:', 'blob:', 'about:'].includes(to.protocol) && to.origin !== new URL(url).origin) {
        this.troubles.push(`a request to another origin: ${request.url()} by ${request.frame()?.url()}`)
      }
      // A credential in an address ends up in histories and logs.
      for (const credential of Object.values(credentials)) {
        if (credential && request.url().includes(credential)) this.troubles.push(`a credential in an address: ${to.pathname}`)
      }
    })
    context.on('requestfailed', (request) => {
      const why = request.failure()?.errorText ?? ''
      if (why !== 'net::ERR_ABORTED') this.troubles.push(`${request.method()} ${request.url()}: ${why}`) // a page may stop what it asked for
    })
    context.on('response', (response) => {
      const kind = response.request().resourceType()
      const status = response.status()
      // A refusal is an answer that a page has to show; a flow looks at that itself.
      if (status >= 500 || (status >= 400 && !['fetch', 'xhr'].includes(kind))) this.troubles.push(`${response.request().method()} ${response.url()}: ${status}`)
    })
    context.on('console', (message) => {
      const refusal = /^Failed to load resource/.test(message.text()) // judged above, with its kind
      if (['error', 'warning'].includes(message.type()) && !refusal) this.troubles.push(`console of ${at(message)}: ${message.text()}`)
    })
    context.on('weberror', (error) => this.troubles.push(`exception: ${error.error().stack}`))
  }

  async #accessible(page, where) {
    // Through the debugger, which no policy of the page stops.
    await page.evaluate(`window.axe || (() => { ${axe} })()`)
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'], preload: false }))
    for (const { id, impact, help, nodes } of found.violations) {
      const places = nodes.slice(0, 5).map((node) => `${node.target.join(' ')} (${(node.any[0] ?? node.all[0] ?? node.none[0])?.message ?? ''})`).join('; ')
      const said = `axe, ${impact}, ${id}: ${help}: ${places}`
      if (['serious', 'critical'].includes(impact)) this.troubles.push(`${where}: ${said}`)
      else console.log(`${where}: ${said}`)
    }
  }

  async #fits(page, where) {
    const wide = await page.evaluate(() => {
      const room = document.documentElement.clientWidth
      if (document.documentElement.scrollWidth <= room) return []
      const out = [...document.body.querySelectorAll('*')].filter((e) => e.getBoundingClientRect().right > room + 1)
      return [`${document.documentElement.scrollWidth} in a window of ${room}`, ...out.slice(0, 5).map((e) => `${e.tagName.toLowerCase()}${e.id && `#${e.id}`}.${e.className}`)]
    })
    if (wide.length) this.troubles.push(`${where}: wider than the window: ${wide.join(', ')}`)
  }
}

// In the page: numbers what can be operated by keyboard and says what each is called. Of a group of radio buttons, and of a
// list of tabs, Tab reaches one only; what has tabindex -1 is reached otherwise.
function operable() {
  const all = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex], [contenteditable="true"]')]
  const groups = new Set()
  const wanted = all.filter((e) => {
    if (e.tabIndex < 0 || e.disabled || e.closest('[inert]') || e.type === 'hidden') return false
    if (!e.checkVisibility({ visibilityProperty: true }) || e.getClientRects().length === 0) return false
    if (e.type === 'radio' && e.name) {
      const group = `${e.form?.id} ${e.name}`
      if (groups.has(group)) return false
      const checked = all.find((other) => other.type === 'radio' && other.name === e.name && other.form === e.form && other.checked)
      if (checked && checked !== e) return false
      groups.add(group)
    }
    return true
  })
  for (const e of document.querySelectorAll('[data-walk]')) delete e.dataset.walk
  wanted.forEach((e, i) => { e.dataset.walk = String(i) })
  return wanted.map((e) => `${e.tagName.toLowerCase()} "${(e.ariaLabel || e.labels?.[0]?.textContent || e.textContent || e.name || '').trim().slice(0, 40)}"`)
}

// In the page: what has the focus, and whether a person sees that.
function focused() {
  const e = document.activeElement
  if (!e || e === document.body || e === document.documentElement) return null
  const marked = (x) => {
    const s = getComputedStyle(x)
    return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== 'none'
  }
  // The label around a hidden control may carry the mark instead of it.
  const shown = [e, e.parentElement, e.closest('label'), ...(e.labels ?? []), e.nextElementSibling].some((x) => x && marked(x))
  const label = `${e.tagName.toLowerCase()} "${(e.ariaLabel || e.textContent || e.name || '').trim().slice(0, 40)}"`
  return { number: e.dataset.walk ?? null, shown, label }
}
