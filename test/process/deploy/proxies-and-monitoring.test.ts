import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Certificate, certificate, hasOpenssl } from '../../helpers/certificates.js'
import { freePort } from '../../helpers/postgres/server.js'
import { isHere, run } from '../../helpers/programs.js'
import { serve } from '../../helpers/service.js'
import { temporaryFolder } from '../../helpers/temporary.js'
import { World } from '../../helpers/world.js'

const deploy = join(import.meta.dirname, '../../../deploy')

interface Setup {
  folder: string
  socket: string
  port: number
  certificate: Certificate
}

test.runIf(hasOpenssl && isHere('caddy'))(
  'a service on a socket is used over TLS through Caddy, whose log has no URL (needs caddy and openssl)',
  async () => {
    const world = new World()
    const socket = join(world.home, 'plants.sock')
    const { token, stop } = await serve(['--socket', socket], {
      folder: world.home,
      rights: 'create,read',
    })
    const own = certificate({ names: ['DNS:localhost'], isAuthority: true })
    const port = await freePort()
    startCaddy({ folder: world.home, socket, port, certificate: own })
    const at = (line: string) =>
      world.spawn(`${line} --store https://localhost:${port} --ca-cert ${own.path}`, {
        env: { PLANTS_TOKEN: token },
      })
    expect(await at('create --id 1 --name Fern --retry 1h')).toMatchObject({ code: 0 })
    const search = 'list --search fern --output ndjson'
    expect(await at(search)).toMatchObject({ code: 0, out: '{"id":1,"name":"Fern"}\n' })
    await stop()
    const logged = async () => {
      expect(await at(`${search} --timeout 500ms`)).toMatchObject({ code: 4 })
      return readFileSync(join(world.home, 'proxy.log'), 'utf8')
    }
    await expect.poll(logged).toMatch(/^.*127\.0\.0\.1.*\b502\b/m)
    expect(await logged()).not.toMatch(/fern|\/plants\?/)
  },
)

/** Starts Caddy with deploy/Caddyfile, but with a certificate from a file. */
function startCaddy({ folder, socket, port, certificate }: Setup): void {
  const file = adapt('Caddyfile', [
    ['unix//run/plants/plants.sock', `unix/${socket}`],
    [
      'plants.example.com {',
      `https://localhost:${port} {\n\ttls ${certificate.path} ${certificate.keyPath}`,
    ],
    ['\tauto_https', '\tadmin off\n\tauto_https'],
  ])
  const path = join(folder, 'Caddyfile')
  writeFileSync(path, file)
  const args = ['--config', path, '--adapter', 'caddyfile']
  run(
    'caddy',
    envOf(folder),
    'validate',
    '--config',
    join(deploy, 'Caddyfile'),
    '--adapter',
    'caddyfile',
  )
  keepRunning('caddy', ['run', ...args], folder)
}

/** A file of deploy/, with the addresses and paths of a test. */
function adapt(name: string, changes: [from: string, to: string][]): string {
  const text = readFileSync(join(deploy, name), 'utf8')
  return changes.reduce((changed, [from, to]) => {
    expect(changed).toContain(from)
    return changed.replace(from, () => to)
  }, text)
}

function keepRunning(program: string, args: string[], folder: string): void {
  const log = openSync(join(folder, 'proxy.log'), 'a')
  const child = spawn(program, args, {
    cwd: folder,
    env: envOf(folder),
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  onTestFinished(async () => {
    if (child.kill()) await once(child, 'exit')
  })
}

/** Caddy keeps its state in the home directory. */
function envOf(folder: string) {
  return { PATH: process.env['PATH'], HOME: folder }
}

const hasPromtool = isHere('promtool')
const alerts = readFileSync(join(deploy, 'alerts.yaml'), 'utf8')

describe('monitoring', () => {
  test('uses only metrics that the service exports', async () => {
    const exported = await exportedMetrics()
    const used = alerts.match(/\b(?:plants|process)_\w+/g) ?? []
    expect(used.length).toBeGreaterThan(5)
    expect(used.filter((name) => !exported.has(name))).toEqual([])
  })

  test.skipIf(!hasPromtool)(
    'raises each alert, and none while all is well (needs prometheus)',
    () => {
      const names = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
      expect(Object.keys(troubles).toSorted()).toEqual(names.toSorted())
      const well = {
        interval: '1m',
        input_series: series(healthy),
        alert_rule_test: names.map((alertname) => ({ eval_time: '20m', alertname })),
      }
      const ill = Object.entries(troubles).map(([alertname, values]) => {
        const expr = `count by (alertname) (ALERTS{alertname="${alertname}", alertstate="firing"})`
        const isRaised = {
          expr,
          eval_time: '20m',
          exp_samples: [{ labels: `{alertname="${alertname}"}`, value: 1 }],
        }
        return {
          interval: '1m',
          input_series: series({ ...healthy, ...values }),
          promql_expr_test: [isRaised],
        }
      })
      const file = join(temporaryFolder(), 'rules.json')
      writeFileSync(
        file,
        JSON.stringify({ rule_files: [join(deploy, 'alerts.yaml')], tests: [well, ...ill] }),
      )
      run('promtool', 'test', 'rules', file)
      run('promtool', 'check', 'config', join(deploy, 'prometheus.yaml'))
    },
  )
})

/** A value a minute of each series, in the notation of promtool: start+step x times. */
type Values = Record<string, string>

const of = (name: string, labels = '') => `${name}{${labels}instance="node1", job="plants"}`
const requests = (outcome: string) => of('plants_requests_total', `outcome="${outcome}", `)
const within = (seconds: string) =>
  of('plants_request_duration_seconds_bucket', `outcome="created", le="${seconds}", `)
const healthy: Values = {
  [of('up')]: '1x30',
  [requests('created')]: '0+600x30',
  [within('0.1')]: '0+600x30',
  [within('5')]: '0+600x30',
  [within('+Inf')]: '0+600x30',
  [of('process_start_time_seconds')]: '1x30',
  [of('process_cpu_seconds_total')]: '0+6x30',
  [of('process_open_fds')]: '20x30',
  [of('process_max_fds')]: '1000x30',
}
/** What differs when an alert must be raised, 20 minutes after the start. */
const troubles: Record<string, Values> = {
  PlantsDown: { [of('up')]: '1x10 0x20' },
  PlantsOutcomeUnknown: { [requests('500')]: '_x14 1x15' },
  PlantsUnavailable: { [requests('503')]: '0+10x30' },
  PlantsSlow: { [within('0.1')]: '0x30', [within('5')]: '0x30' },
  PlantsTokensRejected: { [requests('401')]: '0+120x30' },
  PlantsRestarts: { [of('process_start_time_seconds')]: '1x10 2 3 4 5x17' },
  PlantsCpuBound: { [of('process_cpu_seconds_total')]: '0+59x30' },
  PlantsFilesRunOut: { [of('process_open_fds')]: '900x30' },
}

function series(values: Values) {
  return Object.entries(values).map(([name, text]) => ({ series: name, values: text }))
}

async function exportedMetrics(): Promise<Set<string>> {
  const { log } = await serve(['--admin-port', '0'])
  const text = await (await fetch(`${log.find(({ admin }) => admin)?.['admin']}/metrics`)).text()
  const suffixes: Record<string, string[]> = {
    histogram: ['_bucket', '_sum', '_count'],
    summary: ['', '_sum', '_count'],
  }
  const types = text.matchAll(/^# TYPE (\w+) (\w+)$/gm)
  return new Set(
    Array.from(types, ([, name = '', type = '']) =>
      (suffixes[type] ?? ['']).map((suffix) => name + suffix),
    ).flat(),
  )
}
