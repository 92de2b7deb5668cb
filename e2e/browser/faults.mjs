// The frame's own test: each page of a server that does everything wrong is noticed for what it does, and a good one is not.
import { assert, flow } from './frame.mjs'

const faults = {
  '/good': [],
  '/script': [/Content-Security-Policy/],
  '/elsewhere': [/request to another origin: http:\/\/other\.example/],
  '/exception': [/exception: .*thrown on purpose/s],
  '/rejection': [/exception: .*rejected on purpose/s],
  '/console': [/console of .*: said on purpose/],
  '/asset': [/GET .*\/none\.png: 404/],
  '/broken': [/GET .*\/five-hundred: 500/],
  '/nameless': [/axe, critical, button-name/],
  '/pale': [/axe, serious, color-contrast/],
  '/wide': [/wider than the window/],
  '/unreachable': [/Tab does not reach button "Hidden from Tab"/],
  '/unseen': [/no visible focus on button "No ring"/],
  [`/address?key=${process.env.ACCESSION_KEY}`]: [/a credential in an address: \/address/],
}

await flow(async (b) => {
  assert.throws(() => { b.troubles.push('told'); b.settle() }, /told/)
  for (const [path, expected] of Object.entries(faults)) {
    const page = await b.open(path)
    await page.waitForLoadState('networkidle')
    await b.walk(page, path)
    await b.look(page, path.slice(1).split('?')[0], { widths: [360], schemes: ['light'] })
    const seen = b.troubles
    b.troubles = []
    for (const pattern of expected) {
      assert.ok(seen.some((trouble) => pattern.test(trouble)), `${path}: ${pattern} was not noticed; seen: ${seen.join('\n  ')}`)
    }
    if (expected.length === 0) assert.deepEqual(seen, [], path)
    await page.context().close()
  }
})
