import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { execa } from 'execa'
import { expect, onTestFinished, test } from 'vitest'
import packageLock from '../../package-lock.json'
import { createTemporaryFolder } from '../helpers/sandbox/temporary-folder.js'

const root = join(import.meta.dirname, '../..')

interface Registry {
  status?: number
  /** The names of the packages that have an advisory for all of their versions. */
  vulnerable: string[]
}

/** Starts a registry of npm with advisories, and the versions that package-lock.json has. */
async function startRegistry({ status = 200, vulnerable }: Registry): Promise<string> {
  const server = createServer((request, response) => {
    request.resume()
    const isAudit = request.method === 'POST'
    const name = decodeURIComponent(request.url?.slice(1) ?? '')
    response.statusCode = isAudit ? status : 200
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(isAudit ? buildAdvisories(vulnerable) : buildPackument(name)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

function buildAdvisories(names: string[]) {
  const advisories = names.map((name, index) => [
    name,
    [
      {
        ...{ id: index + 1, url: `https://github.com/advisories/${name}` },
        ...{ title: `A fault of ${name}`, severity: 'high', vulnerable_versions: '*' },
      },
    ],
  ])
  return Object.fromEntries(advisories)
}

function buildPackument(name: string) {
  const versions = Object.entries(packageLock.packages as Record<string, { version?: string }>)
    .filter(([path]) => path.endsWith(`node_modules/${name}`))
    .map(([, { version = '' }]) => [version, { name, version }])
  return { name, 'dist-tags': {}, versions: Object.fromEntries(versions) }
}

/** Runs the audit at a registry of its own. */
async function audit(registry: Registry) {
  const npm_config_registry = await startRegistry(registry)
  const npm_config_cache = createTemporaryFolder() // with no answer of another registry
  const env = { npm_config_registry, npm_config_cache, GITHUB_ACTIONS: 'true', NO_COLOR: '1' }
  return await execa(process.execPath, ['bin/audit.mjs'], { cwd: root, env, reject: false })
}

test.each([
  { vulnerable: ['zod'], why: 'is bundled' },
  { vulnerable: ['@photostructure/sqlite'], why: 'is installed with the package' },
  { vulnerable: ['@oven/bun-linux-x64'], why: 'is in the executables' },
])('the audit fails for $vulnerable, which $why', async ({ vulnerable }) => {
  const { exitCode, stdout } = await audit({ vulnerable })
  const [name = ''] = vulnerable
  const line = `^::error::${name}@[\\d.]+, which is shipped: A fault of ${name} \\(https://`
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: expect.stringMatching(RegExp(line)) })
  expect(stdout).toContain('Advisories: 1 about what is shipped, 0 about the rest')
})

test('the audit only warns of a vulnerable package that only builds or tests', async () => {
  const { exitCode, stdout } = await audit({ vulnerable: ['publint'] })
  expect(exitCode).toBe(0)
  expect(stdout).toMatch(
    /^::warning::publint@[\d.]+, which only builds or tests: A fault of publint/,
  )
  expect(stdout).toContain('Advisories: 0 about what is shipped, 1 about the rest')
})

test('the audit fails if the registry does not answer', async () => {
  const { exitCode, stderr } = await audit({ status: 405, vulnerable: [] })
  expect(exitCode).toBe(1)
  expect(stderr).toMatch(/npm audit failed: 405/)
})
