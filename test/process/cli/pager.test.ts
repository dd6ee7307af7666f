import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { bin } from '../../helpers/sandbox/process.js'
import { isInstalled } from '../../helpers/sandbox/programs.js'
import { Sandbox } from '../../helpers/sandbox/sandbox.js'
import { insertPlants } from '../../helpers/sandbox/sqlite-file.js'
import { openTerminal } from '../../helpers/sandbox/terminal.js'
import { buildJsonResponse, ScriptedServer } from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'

const less = { PAGER: 'less' }
const prompt = 'space for more, q to quit'

async function withPlants(count: number): Promise<Sandbox> {
  const user = new Sandbox()
  await user.spawn('create --id 1 --name Plant')
  insertPlants(user.store, count)
  return user
}

/** The lines that are not empty, without the spaces in front of them. */
function lines(screen: string): string[] {
  const all = stripVTControlCharacters(screen).split(/[\r\n]+/)
  return all.map((line) => line.trim()).filter((line) => line !== '')
}

describe.skipIf(!isInstalled('less'))('in less (needs less)', () => {
  test('q ends a list quietly, with exit code 0', async () => {
    const session = (await withPlants(20_000)).terminal('list', less)
    await session.answer([prompt, 'q'])
    const { code, screen } = await session.ended
    expect([code, screen]).toEqual([0, expect.not.stringContaining('plants:')])
    expect(lines(screen)).toContain('22  Plant 22')
    expect(lines(screen)).not.toContain('23  Plant 23')
  })

  test('a terminal that closes ends a list with exit code 143', async () => {
    const session = (await withPlants(200)).terminal('list', less)
    await session.waitForText(prompt)
    session.close()
    expect((await session.ended).code).toBe(143)
  })

  test.each(['C', 'en_US.UTF-8'])(
    'a list that fits the screen ends at once, with its colours and letters in %s',
    async (LC_ALL) => {
      const user = await withPlants(1)
      await user.spawn('create --id 2 --name Ähre')
      const { code, screen } = await user.terminal('list', { ...less, LC_ALL }).ended
      expect(code).toBe(0)
      expect(screen).toContain('\u001b[2mID  NAME   TAG')
      expect(lines(screen)).toEqual(['ID  NAME   TAG', '1  Plant', '2  Ähre'])
    },
  )

  const page = Array.from({ length: 300 }, (_, index) => ({ id: index + 1, name: 'Plant' }))
  const firstPage = buildJsonResponse(200, page, { Link: '</plants?after=300>; rel="next"' })
  const env = { ...less, PLANTS_TOKEN: token }

  test('q ends a list whose next page does not come', async () => {
    const pages = { 'GET /plants': [firstPage, () => undefined] }
    const service = await ScriptedServer.listen({ others: pages })
    const session = new Sandbox().terminal(`list --timeout 1h --store ${service.url}`, env)
    await session.answer([prompt, 'q'])
    const { code, screen } = await session.ended
    expect([code, screen]).toEqual([0, expect.not.stringContaining('plants:')])
    expect(service.lines).toEqual(['GET /plants?limit=1000', 'GET /plants?after=300'])
  })
})

describe.skipIf(process.platform === 'win32')('a pager other than less', () => {
  test.each(['no-such-pager -R', 'no-such-pager "x"'])(
    'that is missing is not used: PAGER=%s',
    async (PAGER) => {
      const user = await withPlants(20_000)
      const env = { ...user.env, PAGER }
      // A terminal whose program ends is closed soon, whether or not all of it was read.
      const script = `${bin} list --no-color; echo code $?; read line`
      const session = openTerminal('sh', ['-c', script], user.home, env)
      await session.waitForText('code 0')
      const { screen } = session
      session.type('\r')
      await session.ended
      expect(lines(screen).filter((line) => /^\d+ +Plant/.test(line))).toHaveLength(20_000)
    },
  )

  test('handles Ctrl-C itself, which stops the list with exit code 130', async () => {
    const user = await withPlants(20_000)
    const script = `#!/usr/bin/env node
    process.on('SIGINT', () => {
      console.log('interrupted')
      process.stdin.on('end', () => process.exit()).resume()
    })
    console.log('ready')
    setInterval(() => {}, 1000)`
    user.write('pager', script, 0o700)
    const session = user.terminal('list', { PAGER: `${user.home}/pager` })
    await session.answer(['ready', '\x03'], ['interrupted', ''])
    const { code, screen } = await session.ended
    expect([code, screen]).toEqual([130, expect.not.stringContaining('plants:')])
  })
})
