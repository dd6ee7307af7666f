import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { freePort } from '../../helpers/postgres/daemon.js'
import { plants } from '../../helpers/process.js'
import { isHere } from '../../helpers/programs.js'
import { addressOf, startService } from '../../helpers/service-process.js'
import { temporaryFolder } from '../../helpers/temporary.js'

const deploy = join(import.meta.dirname, '../../../deploy')
const hasPromtool = isHere('promtool')
const alerts = readFileSync(join(deploy, 'alerts.yaml'), 'utf8')
const dashboard = JSON.parse(readFileSync(join(deploy, 'dashboard.json'), 'utf8')) as {
  panels: { targets: { expr: string }[] }[]
}
const expressions = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))

describe('monitoring', () => {
  test('uses only metrics that the service exports', async () => {
    const exported = await exportedMetrics()
    const used = [alerts, ...expressions].map((text) => text.match(/\b(?:plants|process|nodejs)_\w+/g) ?? [])
    expect(used.filter((names) => names.length === 0)).toEqual([])
    expect(used.flat().filter((name) => !exported.has(name))).toEqual([])
  })

  test.skipIf(!hasPromtool)('has expressions that Prometheus accepts (needs prometheus)', () => {
    const rules = expressions.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m'),
    }))
    const file = join(temporaryFolder(), 'panels.json')
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules }] }))
    promtool('check', 'config', join(deploy, 'prometheus.yaml'))
    promtool('check', 'rules', file)
  })

  test.skipIf(!hasPromtool)('raises each alert, and none while all is well (needs prometheus)', () => {
    const names = [...alerts.matchAll(/- alert: (\w+)/g)].map(([, name = '']) => name)
    expect(Object.keys(troubles).toSorted()).toEqual(names.toSorted())
    const well = {
      interval: '1m',
      input_series: series(healthy),
      alert_rule_test: names.map((alertname) => ({ eval_time: '20m', alertname })),
    }
    const ill = Object.entries(troubles).map(([alertname, values]) => {
      const expr = `count by (alertname) (ALERTS{alertname="${alertname}", alertstate="firing"})`
      const isRaised = { expr, eval_time: '20m', exp_samples: [{ labels: `{alertname="${alertname}"}`, value: 1 }] }
      return { interval: '1m', input_series: series({ ...healthy, ...values }), promql_expr_test: [isRaised] }
    })
    const file = join(temporaryFolder(), 'test.json')
    writeFileSync(file, JSON.stringify({ rule_files: [join(deploy, 'alerts.yaml')], tests: [well, ...ill] }))
    promtool('test', 'rules', file)
  })
})

/** A value a minute of each series, in the notation of promtool: start+step x times. */
type Values = Record<string, string>

const node = 'instance="node1", job="plants"'
const created = `plants_requests_total{outcome="created", ${node}}`
const fast = `plants_request_duration_seconds_bucket{outcome="created", le="0.1", ${node}}`
const medium = `plants_request_duration_seconds_bucket{outcome="created", le="5", ${node}}`
const slow = `plants_request_duration_seconds_bucket{outcome="created", le="+Inf", ${node}}`
const healthy: Values = {
  [`up{${node}}`]: '1x30',
  [created]: '0+600x30',
  [fast]: '0+600x30',
  [medium]: '0+600x30',
  [slow]: '0+600x30',
  [`plants_queue_depth{${node}}`]: '5x30',
  [`process_start_time_seconds{${node}}`]: '1x30',
  [`process_cpu_seconds_total{${node}}`]: '0+6x30',
  [`process_open_fds{${node}}`]: '20x30',
  [`process_max_fds{${node}}`]: '1000x30',
}
/** What differs when an alert must be raised, 20 minutes after the start. */
const troubles: Record<string, Values> = {
  PlantsDown: { [`up{${node}}`]: '1x10 0x20' },
  PlantsOutcomeUnknown: { [`plants_requests_total{outcome="500", ${node}}`]: '_x14 1x15' },
  PlantsUnavailable: { [`plants_requests_total{outcome="503", ${node}}`]: '0+10x30' },
  PlantsQueueLong: { [`plants_queue_depth{${node}}`]: '2000x30' },
  PlantsSlow: { [fast]: '0x30', [medium]: '0x30' },
  PlantsTokensRejected: { [`plants_requests_total{outcome="401", ${node}}`]: '0+120x30' },
  PlantsRestarts: { [`process_start_time_seconds{${node}}`]: '1x10 2 3 4 5x17' },
  PlantsCpuBound: { [`process_cpu_seconds_total{${node}}`]: '0+59x30' },
  PlantsFilesRunOut: { [`process_open_fds{${node}}`]: '900x30' },
}

function series(values: Values) {
  return Object.entries(values).map(([name, text]) => ({ series: name, values: text }))
}

function promtool(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
  expect(status, stdout + stderr).toBe(0)
}

/** The names of all series of /metrics. */
async function exportedMetrics(): Promise<Set<string>> {
  const folder = temporaryFolder()
  await plants(['tokens', 'create'], folder)
  const port = await freePort()
  await addressOf(startService(['--port', '0', '--admin-port', `${port}`], folder))
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const suffixes: Record<string, string[]> = {
    histogram: ['_bucket', '_sum', '_count'],
    summary: ['', '_sum', '_count'],
  }
  const types = text.matchAll(/^# TYPE (\w+) (\w+)$/gm)
  return new Set(
    Array.from(types, ([, name = '', type = '']) => (suffixes[type] ?? ['']).map((suffix) => name + suffix)).flat(),
  )
}
