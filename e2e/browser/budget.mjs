// What the first pages cost a person who was never here before. Bytes and requests are bounded; times are told, not judged.
import { assert, flow } from './frame.mjs'

const most = { bytes: 150 * 1024, requests: 20 }

await flow(async (b) => {
  for (const path of ['/', '/portal']) {
    const person = await b.person()
    const page = await person.newPage()
    const cost = { bytes: 0, requests: 0 }
    const wire = await person.newCDPSession(page)
    await wire.send('Network.enable')
    wire.on('Network.loadingFinished', ({ encodedDataLength }) => { cost.bytes += encodedDataLength; cost.requests++ })
    await page.goto(path, { waitUntil: 'networkidle' })
    const times = await page.evaluate(() => {
      const [visit] = performance.getEntriesByType('navigation')
      const [painted] = performance.getEntriesByName('first-contentful-paint')
      // Modules have run before DOMContentLoaded is over.
      return { interactive: visit.domContentLoadedEventEnd, load: visit.loadEventEnd, painted: painted?.startTime ?? 0 }
    })
    console.log(`${path}: ${cost.requests} requests, ${(cost.bytes / 1024).toFixed(1)} KiB; painted after ${times.painted.toFixed(0)} ms, interactive after ${times.interactive.toFixed(0)} ms, loaded after ${times.load.toFixed(0)} ms`)
    assert.ok(cost.requests > 0, `${path} cost nothing: nothing was measured`)
    assert.ok(cost.bytes < most.bytes, `${path} is ${cost.bytes} bytes, at most ${most.bytes}`)
    assert.ok(cost.requests <= most.requests, `${path} is ${cost.requests} requests, at most ${most.requests}`)
    await person.close()
  }
})
