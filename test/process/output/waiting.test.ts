import { once } from 'node:events'
import { expect, test } from 'vitest'
import { Hostile, json } from '../../helpers/hostile.js'
import { plantLines } from '../../helpers/import.js'
import { PlantService, takeTime } from '../../helpers/plant-service.js'
import { plants } from '../../helpers/process.js'
import { token } from '../../helpers/remote.js'
import { RemoteImport } from '../../helpers/remote-import.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { terminal } from '../../helpers/terminal.js'

const create = ['create', '--id', '1', '--name', 'Fern', '--store']
const env = { PLANTS_TOKEN: token }

const created = json(200, { name: 'Fern' })

test('a terminal is told each second for what is waited, and the line is taken away', async () => {
  const shown = new AbortController()
  const remote = await Hostile.listen({
    posts: [(socket) => void once(shown.signal, 'abort').then(() => socket.write(created))],
  })
  const session = terminal([...create, remote.url, '--no-color'], temporaryFolder(), env)
  const host = `127.0.0.1:${remote.port}`
  await session.see(`\rWaiting for ${host}\u2026 (1 s)\u001b[K\rWaiting for ${host}\u2026 (2 s)\u001b[K`)
  shown.abort()
  const { code, screen } = await session.ended
  expect(code).toBe(0)
  expect(screen.slice(screen.lastIndexOf('\r\u001b[K'))).toContain('Planted Fern (id 1)')
})

test('so it is during an import', async () => {
  const shown = new AbortController()
  const service = await PlantService.listen({
    deed: async ({ index }) => void (index === 5 && (await once(shown.signal, 'abort'))),
  })
  const run = new RemoteImport(plantLines(10), service.url)
  const session = terminal(['import', 'plants.ndjson', '--store', service.url], run.folder, { PLANTS_TOKEN: token })
  await session.see(`Waiting for ${new URL(service.url).host}\u2026 (1 s)`)
  shown.abort()
  expect((await session.ended).code).toBe(0)
})

test('a warning stands on a line of its own', async () => {
  const shown = new AbortController()
  const busy = json(503, { error: 503, message: 'Busy' })
  const remote = await Hostile.listen({
    posts: [(socket) => void once(shown.signal, 'abort').then(() => socket.write(busy)), created],
  })
  const session = terminal([...create, remote.url, '--no-color'], temporaryFolder(), env)
  await session.see('(1 s)')
  shown.abort()
  expect((await session.ended).screen).toMatch(/ s\)\u001b\[K\r\u001b\[Kplants: Busy\. Trying again/)
})

test('a pipe, JSON errors and --verbose get no such line', async () => {
  const inPipe = [[], ['--output', 'json'], ['--verbose']].map(async (flags) => {
    const remote = await Hostile.listen({ posts: [(socket) => void takeTime(2500).then(() => socket.write(created))] })
    const { code, err } = await plants([...create, remote.url, ...flags], temporaryFolder(), { env })
    return { code, isWaiting: err.includes('Waiting') }
  })
  const onTerminal = ['--output=json', '--verbose'].map(async (flag) => {
    const remote = await Hostile.listen({ posts: [(socket) => void takeTime(2500).then(() => socket.write(created))] })
    const { code, screen } = await terminal([...create, remote.url, flag], temporaryFolder(), env).ended
    return { code, isWaiting: screen.includes('Waiting') }
  })
  for (const shown of await Promise.all([...inPipe, ...onTerminal]))
    expect(shown).toEqual({ code: 0, isWaiting: false })
})
