import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { runBlock, shell, withoutNotes } from '../../helpers/blocks.js'
import { blocksOf, pages, usesNpm } from '../../helpers/documents.js'
import { helpsOf } from '../../helpers/helps.js'
import { ownService, token } from '../../helpers/remote.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const helps = await helpsOf([])

describe('the documentation', () => {
  test('shows commands that work, in the order of each page', async () => {
    const shared = 'docs/databases.md' // readme-shared.test.ts runs it
    const runs = [...pages].filter(([path]) => path !== shared).map(async ([path, page]) => [path, await firstDifference(page)] as const)
    expect((await Promise.all(runs)).filter(([, difference]) => difference !== undefined)).toEqual([])
  })
})

test('the examples in the help work', async () => {
  const prepared = temporaryFolder()
  const files = `echo '{"id":9,"name":"Fern"}' | tee fern.json > plants.ndjson; echo CommonName,Family > list.csv; echo ${token} > token.txt`
  await shell(files, prepared)
  await shell(
    'for id in 1 2 3; do plants create --id $id --name Fern --tag shade; done; plants backup plants.bak; gzip -k plants.bak; plants tokens create --note laptop; plants tokens create --store ./garden.db',
    prepared,
  )
  const lines = [...helps].flatMap(([path, help]) => {
    const [, section = ''] = /^Examples?:\n((?: {2}.*\n)*)/m.exec(help) ?? []
    const examples = section.trimEnd().split('\n').filter(Boolean)
    expect(path.includes(' ') || examples.length > 0, path).toBe(true)
    return examples
  })
  const service = await ownService({ host: '127.0.0.1', port: 0 }, join(prepared, 'served.db'))
  const results = await Promise.all(lines.map(async (line) => ({ line, ...(await runExample(line, prepared, service)) })))
  expect(results).toEqual(lines.map((line) => ({ line, exitCode: 0, stderr: '' })))
})

/** Runs an example of the help in a folder of its own, with a plant unless it creates one. */
async function runExample(line: string, prepared: string, service: string) {
  const folder = temporaryFolder()
  cpSync(prepared, folder, { recursive: true, filter: (path) => !(line.includes('plants create') && path.endsWith('/data')) })
  const real = line.replace('https://plants.example.com', line.includes('auth') ? service : 'https://plants.example.com')
  if (real.includes('auth status')) await shell(real.replace('status', 'login --with-token < token.txt'), folder)
  const { exitCode, stderr } = await shell(unattended(real), folder)
  // Its rows would have the ids that exist.
  return { exitCode, stderr: withoutNotes(stderr).replace('plants: warning: list.csv contains no records', '') }
}

/** An example that ends without somebody who answers or stops it. */
function unattended(line: string): string {
  if (line.includes('delete') && !line.includes('--yes')) return `${line} --yes`
  if (line.includes('auth login') && !line.includes('--with-token')) return `${line} --with-token < token.txt`
  if (!line.includes('plants serve')) return line
  return `${line} --port 0 > address.txt 2> log.txt & until grep -qs http address.txt; do kill -0 $!; done; kill $!; wait $!`
}

/** Runs the blocks of a page one after the other in a folder of its own, until one does something else than the page shows. */
async function firstDifference(page: string) {
  const folder = temporaryFolder()
  for (const block of blocksOf(page).filter((each) => !usesNpm(each))) {
    const difference = await runBlock(block, folder)
    if (difference === undefined) continue
    await shell('kill $(cat *.pid 2> /dev/null) 2> /dev/null || true', folder)
    return difference
  }
  return undefined
}
