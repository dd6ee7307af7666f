import { createServer } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createClock } from '../../helpers/sandbox/clock.js'
import { ImportSandbox } from '../../helpers/sandbox/import-sandbox.js'
import { runPlants } from '../../helpers/sandbox/run.js'
import { createTemporaryFolder } from '../../helpers/sandbox/temporary-folder.js'

import { buildPlantWorkbook } from '../../helpers/sandbox/workbook.js'
import { serveFile, testCaller, token } from '../../helpers/scripted-server/service.js'

// What an error says to do next, in its exact words.

interface Failure {
  command: string[]
  files?: Record<string, string | Buffer>
  env?: Record<string, string>
  err: string
}

const failures: Failure[] = [
  {
    command: ['import', 'ragged.csv'],
    files: { 'ragged.csv': 'id,name,tag\n1,Fern,green\n2,Rose,red,white\n' },
    err: `\
plants: ragged.csv:3: The row has 4 cells, but the header has 3
plants: Rejected 1 plant
  Put each cell that contains the delimiter in double quotes
`,
  },
  {
    command: ['import', 'names.json'],
    files: { 'names.json': '["Rose","Oak"]' },
    err: `\
plants: names.json is not a list of plants: it has no objects
  See: plants help importing
`,
  },
  {
    command: ['import', 'nul.csv'],
    files: { 'nul.csv': '\nid,name\n1,Fern\n2,Ro\0se\n' },
    err: `\
plants: nul.csv is a binary file: line 4 contains the character U+0000
  Save the list as CSV, JSON or .xlsx, and import that file. If it is a text, remove that character from it
`,
  },
  {
    command: ['import', 'half.xlsx'],
    files: { 'half.xlsx': buildPlantWorkbook('').subarray(0, 500) },
    err: `\
plants: half.xlsx is damaged: its list of parts cannot be read
  Download or copy it again, or save it again as .xlsx or CSV in a spreadsheet program
`,
  },
  {
    command: ['list', '--store', 'postgres://example.invalid:99999/plants'],
    err: `\
plants: --store has a port that is not from 1 to 65535
  Correct the port
`,
  },
  {
    command: ['list', '--store', 'http://example.invalid', '--allow-http'],
    env: { HTTP_PROXY: 'http://proxy.invalid:99999', PLANTS_TOKEN: token },
    err: `\
plants: HTTP_PROXY or ALL_PROXY is not the address of an http or https proxy
  For example: HTTP_PROXY=http://proxy.example.com:3128
`,
  },
]

test.each(failures)(
  'the error of $command says what to do',
  async ({ command, files = {}, env = {}, err }) => {
    const user = new ImportSandbox()
    for (const [name, content] of Object.entries(files)) user.write(name, content)
    Object.assign(user.env, env)
    expect(await user.run(command)).toMatchObject({ err })
  },
)

test('an import skips or changes plants that exist', async () => {
  const user = new ImportSandbox()
  await user.run(['create', '--id', '1', '--name', 'Fern'])
  user.write('list.csv', 'id,name\n1,Moss\n')
  expect(await user.import('list.csv')).toMatchObject({ code: 6 })
  expect(await user.import('list.csv --if-exists skip')).toMatchObject({ code: 0, skipped: 1 })
  expect(await user.import('list.csv --if-exists update')).toMatchObject({ code: 0, updated: 1 })
})

test('the hint is that of the most frequent cause of rejected records', async () => {
  const user = new ImportSandbox()
  user.write('list.csv', 'id,name\n1,Moss,x\n7,\n')
  const first = await user.import('list.csv')
  expect(first.err).toMatch(/^ {2}Put each cell that contains the delimiter in double quotes$/m)
  user.write('list.csv', 'id,name\n1,Moss,x\n7,\n8,\n')
  const second = await user.import('list.csv')
  expect(second.err).toMatch(/^ {2}Correct the input, and run the command again/m)
})

test('a list with names in quotes is imported with the cell that the hint names', async () => {
  const user = new ImportSandbox()
  user.write('ragged.csv', 'id,name,tag\n1,Fern,green\n2,Rose,"red,white"\n')
  expect(await user.import('ragged.csv')).toMatchObject({ code: 0, created: 2 })
})

test('the warning of an empty tag says how to remove the tag', async () => {
  const user = new ImportSandbox()
  await user.run(['create', '--id', '1', '--name', 'Fern', '--tag', 'shade'])
  const { err } = await user.run(['update', '1', '--tag', ''])
  expect(err).toBe(
    'plants: warning: --tag is empty, so the tag becomes "". To remove the tag: --no-tag\n',
  )
})

test('a port at which another program closes the connection may be the wrong one', async () => {
  const { now, pass } = createClock()
  const server = createServer((socket) => {
    pass() // There is no time for another try.
    socket.once('data', () => socket.end())
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => {
    server.close()
  })
  const { port } = server.address() as { port: number }
  const store = ['--store', `http://127.0.0.1:${port}`]
  const env = { PLANTS_TOKEN: token, PLANTS_CONFIG_DIR: createTemporaryFolder() }
  const { err } = await runPlants(['list', ...store], { env, now })
  expect(err).toContain(`
plants: http://127.0.0.1:${port} did not answer: the connection was closed
  Check the address, its port, and whether it begins with http:// or https://
`)
})

test('an import with a token that may not read says why plants are rejected', async () => {
  const user = new ImportSandbox()
  user.write('plants.csv', 'id,name\n1,Fern\n2,Moss\n')
  const caller = { ...testCaller, rights: ['create'] as const }
  const store = await serveFile(`${user.home}/served.db`, caller)
  Object.assign(user.env, { PLANTS_STORE: store, PLANTS_TOKEN: token })
  expect(await user.import('plants.csv')).toMatchObject({ code: 0, created: 2 })
  // The key shows that the same plant was created, so a repeated import needs no right to read.
  expect(await user.import('plants.csv')).toMatchObject({ code: 0, skipped: 2 })
  user.write('plants.csv', 'id,name\n1,Oak\n2,Elm\n')
  const { err } = await user.import('plants.csv')
  expect(err).toBe(`\
plants: plants.csv:2: A plant with id 1 already exists
plants: plants.csv:3: A plant with id 2 already exists
plants: Rejected 2 plants
  Use a token that may read plants, so that a record is compared with the plant that has its id
`)
  const skipped = await user.import('plants.csv --if-exists skip')
  expect(skipped).toMatchObject({ code: 0, skipped: 2 })
})
