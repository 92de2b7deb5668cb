// The documentation as a reader uses it: reading, finding, copying, trying the sandbox, opening an operation; by keyboard too.
import { assert, flow, url } from './frame.mjs';

await flow(async (b) => {
  const page = await b.open('/docs');
  await page.getByRole('heading', { level: 1, name: 'Documentation' }).waitFor();
  await b.look(page, 'docs');

  // A heading is found by its words, and led to.
  await page.getByRole('searchbox', { name: 'Find a heading' }).fill('withdrawal receipts');
  await page.getByRole('status').getByRole('link', { name: 'Withdrawal receipts' }).click();
  await page.waitForURL('**/docs/api#withdrawal-receipts');
  await page.getByRole('heading', { name: /^Withdrawal receipts/ }).waitFor();
  await page.getByRole('searchbox', { name: 'Find a heading' }).fill('no such words anywhere');
  await page.getByText('No heading has these words.').waitFor();

  // Commands show this service's address, and are copied as they stand.
  await page.goto(`${url}/docs/upload`);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  const block = page.locator('.code', { hasText: 'export ACCESSION_URL' });
  await block.getByRole('button', { name: 'Copy' }).focus();
  await b.glimpse(page, '.code button', 'Copied', () => page.keyboard.press('Enter'));
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(copied.includes(`ACCESSION_URL=${url}`) && copied.endsWith('\n'), `copied ${copied}`);
  await b.look(page, 'docs-upload');
  await b.walk(page, 'docs-upload');

  // The sandbox, without an account, on the page.
  await page.goto(`${url}/docs/reference`);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('status').getByText('authentication_required').waitFor();
  await page.getByRole('button', { name: 'Get a credential' }).click();
  await page.getByRole('status').getByText('"expires_at"').waitFor();
  assert.match(await page.getByLabel('Sandbox credential').inputValue(), /^sbx_/);
  await page.getByLabel('Body (JSON)').fill('{"input": "<img src=x onerror=alert(1)>"}');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('status').getByText('"echo": "<img src=x onerror=alert(1)>"').waitFor();
  await page.getByLabel('Operation', { exact: true }).selectOption({ label: 'POST /api/v1/sandbox/batch' });
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('status').getByText('"echo": "two"').waitFor();
  await page.getByLabel('Operation', { exact: true }).selectOption({ label: 'GET /api/v1/sandbox' });
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('status').getByText('"environment": "sandbox"').waitFor();
  await page.getByLabel('Operation', { exact: true }).selectOption({ label: 'POST /api/v1/sandbox/echo' });
  await page.getByLabel('Sandbox credential').fill('acc_of_somebody');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByText('This is not a sandbox credential').waitFor();

  // An operation, found and opened by keyboard.
  await page.getByLabel('Find an operation').fill('initiate');
  const operation = page.locator('#op-initiatePartnerUpload');
  await operation.locator('summary').first().focus();
  await page.keyboard.press('Enter');
  await operation.getByRole('heading', { name: 'Parameters' }).waitFor();
  await operation.getByText('Idempotency-Key').first().waitFor();
  await operation.getByText('Fields of the body').click();
  await operation.getByText('text_hash_sha256').first().waitFor();
  await operation.getByText(/^Refusals/).click();
  await operation.getByText('quota_exceeded').waitFor();
  await b.look(page, 'docs-reference-operation');

  // All of them can be opened, and an address can name one.
  const every = await b.open('/docs/reference#op-withdrawPartnerUpload');
  await every.locator('#op-withdrawPartnerUpload[open]').waitFor();
  const contract = await every.evaluate(async () => (await fetch('/api/v1/ai/openapi.json')).json());
  const named = Object.values(contract.paths).flatMap((path) => Object.values(path).map((operation) => operation.operationId)).filter(Boolean);
  for (const name of named) await every.locator(`#op-${name}`).evaluate((node) => { node.open = true; });
  await every.waitForFunction(() => [...document.querySelectorAll('.operation[open] > .body')].every((body) => body.hasChildNodes()));
  assert.equal(await every.locator('.operation[open]').count(), named.length);
  await every.locator('#op-withdrawPartnerUpload').evaluate((node) => {
    for (const other of document.querySelectorAll('.operation')) other.open = other === node;
  });
  await b.look(every, 'docs-reference');
  await b.walk(every, 'docs-reference');

  // The rest are the same blocks; no page is wider than a telephone.
  const narrow = await b.person({ width: 360 });
  for (const name of ['quick-start', 'concepts', 'portal', 'webhooks', 'mcp', 'command-line', 'api', 'errors', 'clients', 'operations', 'custody', 'architecture', 'quality', 'scale']) {
    const one = await b.open(`/docs/${name}`, { person: narrow });
    await one.getByRole('heading', { level: 1 }).waitFor();
    const [wide, seen] = await one.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= seen, `/docs/${name} is ${wide} wide in a window of ${seen}`);
    if (name === 'concepts') await b.look(one, 'docs-concepts');
    await one.close();
  }
});
