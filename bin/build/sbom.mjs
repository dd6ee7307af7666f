/**
 * Bills of materials in CycloneDX 1.6, which scanners read. `npm sbom` cannot write them: it knows
 * what is installed, which is less or more than what is bundled.
 *
 * @typedef {{ type: string, 'bom-ref': string, name: string, version: string, purl: string,
 *   licenses?: { expression: string }[] }} Component
 * @typedef {{ ref: string, dependsOn: string[] }} Dependency
 */

import packageJson from '../../package.json' with { type: 'json' }

export const sbomName = 'sbom.cdx.json'

/** The program, as the component that depends on all bundled packages. */
export const application = { ...describePackage(packageJson), type: 'application' }

/**
 * Describes a package of npm. A licence alone is also an expression of SPDX.
 *
 * @returns {Component}
 */
export function describePackage({ name, version, license }) {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
  return { ...describeComponent(name, version, purl), licenses: [{ expression: license }] }
}

/**
 * Describes a library that is in no registry of packages.
 *
 * @returns {Component}
 */
export function describeLibrary(name, version) {
  return describeComponent(name, version, `pkg:generic/${name}@${version}`)
}

function describeComponent(name, version, purl) {
  return { type: 'library', 'bom-ref': purl, name, version, purl }
}

/**
 * Formats a bill of materials. It has no time and no serial number, so that the same sources give
 * the same bytes.
 *
 * @param {Component[]} components the same version of a package may be there twice
 * @param {Dependency[]} dependencies those of the same component are joined
 */
export function formatSbom(components, dependencies) {
  const byRef = new Map(components.map((component) => [component['bom-ref'], component]))
  const sbom = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: application },
    components: [...byRef.keys()].toSorted().map((ref) => byRef.get(ref)),
    dependencies: joinDependencies(dependencies),
  }
  return `${JSON.stringify(sbom)}\n`
}

function joinDependencies(dependencies) {
  const byRef = new Map()
  for (const { ref, dependsOn } of dependencies)
    byRef.set(ref, new Set([...(byRef.get(ref) ?? []), ...dependsOn]))
  return [...byRef.keys()]
    .toSorted()
    .map((ref) => ({ ref, dependsOn: [...byRef.get(ref)].toSorted() }))
}
