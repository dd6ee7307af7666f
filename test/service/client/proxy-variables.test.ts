/*
 * The variables that select a proxy, against curl and proxy-from-env. Both are asked in each row,
 * so that an update of either which answers otherwise fails here.
 */
import { execa } from 'execa'
import { getProxyForUrl } from 'proxy-from-env'
import { expect, test } from 'vitest'
import { PlantsError } from '../../../src/errors.js'
import { runInEnvironment, runPlants } from '../../helpers/sandbox/run.js'
import { startForwardProxy } from '../../helpers/scripted-server/scripted-server.js'
import { token } from '../../helpers/scripted-server/service.js'

const hasCurl = (await execa('curl', ['--version'], { reject: false })).exitCode === 0
const plain = 'http://plants.example.com'
const secure = 'https://plants.example.com'

interface Row {
  /** P is the address of the proxy, H its host and port. */
  variables: string
  url: string
  isProxied: boolean
  /** What curl does instead, and why this program does not. */
  curl?: { isProxied: boolean; why: string }
}

const httpoxy = { isProxied: false, why: 'a CGI program gets HTTP_PROXY from a Proxy header' }
const subdomains = { isProxied: false, why: 'its NO_PROXY names a domain with all below it' }
const noWildcards = { isProxied: true, why: 'its NO_PROXY has no wildcards but "*" alone' }

const rows: Row[] = [
  { variables: '', url: plain, isProxied: false },
  { variables: 'http_proxy=P', url: plain, isProxied: true },
  { variables: 'http_proxy=H', url: plain, isProxied: true },
  { variables: 'HTTP_PROXY=P', url: plain, isProxied: true, curl: httpoxy },
  { variables: 'HTTP_PROXY=H', url: plain, isProxied: true, curl: httpoxy },
  { variables: 'http_proxy=P', url: secure, isProxied: false },
  { variables: 'https_proxy=P', url: secure, isProxied: true },
  { variables: 'https_proxy=H', url: secure, isProxied: true },
  { variables: 'HTTPS_PROXY=P', url: secure, isProxied: true },
  { variables: 'HTTPS_PROXY=H', url: secure, isProxied: true },
  { variables: 'HTTPS_PROXY=P', url: plain, isProxied: false },
  { variables: 'all_proxy=P', url: plain, isProxied: true },
  { variables: 'ALL_PROXY=P', url: plain, isProxied: true },
  { variables: 'all_proxy=H', url: secure, isProxied: true },
  { variables: 'ALL_PROXY=P', url: secure, isProxied: true },
  { variables: 'https_proxy=P HTTPS_PROXY=http://127.0.0.1:9', url: secure, isProxied: true },
  { variables: 'https_proxy=P ALL_PROXY=http://127.0.0.1:9', url: secure, isProxied: true },
  { variables: 'https_proxy=P no_proxy=plants.example.com', url: secure, isProxied: false },
  { variables: 'https_proxy=P NO_PROXY=PLANTS.EXAMPLE.COM', url: secure, isProxied: false },
  { variables: 'https_proxy=P no_proxy=.example.com', url: secure, isProxied: false },
  {
    variables: 'https_proxy=P no_proxy=example.com',
    url: secure,
    isProxied: true,
    curl: subdomains,
  },
  {
    variables: 'https_proxy=P no_proxy=*.example.com',
    url: secure,
    isProxied: false,
    curl: noWildcards,
  },
  { variables: 'https_proxy=P no_proxy=*', url: secure, isProxied: false },
  {
    variables: 'https_proxy=P no_proxy=a.example,plants.example.org',
    url: secure,
    isProxied: true,
  },
  {
    variables: 'https_proxy=P no_proxy=plants.example.com:8443',
    url: `${secure}:8443`,
    isProxied: false,
    curl: { isProxied: true, why: 'its NO_PROXY has no ports' },
  },
  { variables: 'https_proxy=P no_proxy=plants.example.com:8443', url: secure, isProxied: true },
]

test.each(rows)('a request to $url with $variables uses the proxy: $isProxied', async (row) => {
  const proxy = await startForwardProxy({ errorStatus: 502 })
  const env = toEnvironment(row.variables, proxy.url)
  const signal = AbortSignal.abort(new PlantsError('interrupted', 'Before anything was sent'))
  const argv = `create --id 1 --name Fern --allow-http --verbose --store ${row.url}`.split(' ')
  const { err } = await runPlants(argv, { env: { ...env, PLANTS_TOKEN: token }, signal })
  const line = `* proxy ${new URL(proxy.url).host}\n`
  expect(err.includes('* proxy')).toBe(row.isProxied)
  expect(err.includes(line)).toBe(row.isProxied)
  expect(runInEnvironment(env, () => getProxyForUrl(row.url)) !== '').toBe(row.isProxied)
})

test.runIf(hasCurl).each(rows)(
  '$variables leads curl to $url as this program, unless it says why not (needs curl)',
  async ({ variables, url, isProxied, curl }) => {
    const proxy = await startForwardProxy({ errorStatus: 502 })
    const { hostname, port, protocol } = new URL(url)
    // Without a proxy, nothing is there, and no name server is asked.
    const endpoint = `${hostname}:${port || (protocol === 'https:' ? 443 : 80)}:127.0.0.9`
    const args = ['--silent', '--max-time', '10', '--resolve', endpoint, url]
    const env = { PATH: process.env['PATH'], ...toEnvironment(variables, proxy.url) }
    await execa('curl', args, { env, extendEnv: false, reject: false })
    expect(proxy.lines.length > 0).toBe(curl?.isProxied ?? isProxied)
  },
)

function toEnvironment(variables: string, proxy: string): Record<string, string> {
  const assignments = variables.split(' ').filter(Boolean)
  return Object.fromEntries(
    assignments.map((assignment) => {
      const [name = '', value = ''] = assignment.split('=')
      const address = { P: proxy, H: new URL(proxy).host }[value]
      return [name, address ?? value]
    }),
  )
}
