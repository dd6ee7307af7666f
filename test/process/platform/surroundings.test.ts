import { readdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { oddSurroundings } from '../../helpers/differences.js'
import { canMount, isLinux } from '../../helpers/linux.js'
import { startUnder } from '../../helpers/process.js'
import { World } from '../../helpers/world.js'

test('what runtimes and tools look for in the current folder changes nothing', async () => {
  const user = new World()
  const settings = 'PLANTS_STORE=/nonexistent/plants.db\nPLANTS_OUTPUT=text\n'
  for (const name of ['.env', '.env.local', '.env.production', '.env.development']) user.write(name, settings)
  user.write('preload.cjs', 'require("node:fs").writeFileSync("loaded", ""); console.log("loaded")')
  user.write('bunfig.toml', 'preload = ["./preload.cjs"]\n')
  user.write('tsconfig.json', '{"compilerOptions":{"paths":{"*":["./preload.cjs"]}}}')
  user.write('package.json', '{"name":"plants","type":"module","imports":{"#*":"./preload.cjs"}}')
  const before = readdirSync(user.home)
  for (const [command, out] of [
    ['create --id 1 --name Fern', '{"name":"Fern"}\n'],
    ['list', '{"id":1,"name":"Fern"}\n'],
    ['config get output', ''],
  ] as const)
    expect((await user.spawn(command)).out).toBe(out)
  expect(readdirSync(user.home).filter((name) => !before.includes(name))).toEqual(['data'])
})

describe.runIf(isLinux)('in odd surroundings a list ends as docs/platforms.md says:', () => {
  const scripts: Record<string, string[]> = {
    'the current directory is gone': ['sh', '-c', 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"'],
    'no /proc on Linux': ['unshare', '-rm', 'sh', '-c', 'mount -t tmpfs tmpfs /proc && exec "$0" "$@"'],
  }

  test('they are all tried here', () => {
    expect([...oddSurroundings.keys()]).toEqual(Object.keys(scripts))
  })

  test.runIf(canMount).each(Object.entries(scripts))('%s (needs unshare)', async (name, [program = '', ...under]) => {
    const user = new World()
    await user.spawn('create --id 1 --name Fern')
    const { exitCode, signal, stdout } = await startUnder(program, under, ['list'], user.home, { cwd: user.home })
    const code = signal === 'SIGABRT' ? 134 : exitCode
    expect({ code: String(code), stdout }).toEqual({
      code: expect.toBeOneOf(oddSurroundings.get(name)?.split(' or ') ?? []),
      stdout: code === 0 ? '{"id":1,"name":"Fern"}\n' : '',
    })
  })
})
