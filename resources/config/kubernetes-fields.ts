/** By section, "" being the top: the names that may stand in it. What stands in other sections is free, or goes deeper. */
export type Fields = Readonly<Record<string, readonly string[]>>;

const fields = (table: Readonly<Record<string, string>>): Fields =>
  Object.fromEntries(Object.entries(table).map(([section, names]) => [section, names.trim().split(/\s+/)]));

/** Those that Kubernetes 1.34, 1.35, 1.36 or 1.37 has: the types of k8s.io/kubelet/config/v1beta1. */
export const KUBELET_FIELDS: Fields = fields({
  "": `
    address allowedUnsafeSysctls apiVersion authentication authorization cgroupDriver cgroupRoot cgroupsPerQOS clusterDNS
    clusterDomain configMapAndSecretChangeDetectionStrategy containerLogMaxFiles containerLogMaxSize containerLogMaxWorkers
    containerLogMonitorInterval containerRuntimeEndpoint contentType cpuCFSQuota cpuCFSQuotaPeriod cpuManagerPolicy
    cpuManagerPolicyOptions cpuManagerReconcilePeriod crashLoopBackOff defaultPodSysctls enableContentionProfiling
    enableControllerAttachDetach enableDebugFlagsHandler enableDebuggingHandlers enableProfilingHandler enableServer
    enableSystemLogHandler enableSystemLogQuery enforceNodeAllocatable eventBurst eventRecordQPS evictionHard
    evictionMaxPodGracePeriod evictionMinimumReclaim evictionPressureTransitionPeriod evictionSoft evictionSoftGracePeriod
    failCgroupV1 failSwapOn featureGates fileCheckFrequency hairpinMode healthzBindAddress healthzPort httpCheckFrequency
    imageGCHighThresholdPercent imageGCLowThresholdPercent imageMaximumGCAge imageMinimumGCAge
    imagePullCredentialsVerificationPolicy imageServiceEndpoint iptablesDropBit iptablesMasqueradeBit kernelMemcgNotification
    kind kubeAPIBurst kubeAPIQPS kubeletCgroups kubeReserved kubeReservedCgroup localStorageCapacityIsolation logging
    makeIPTablesUtilChains maxOpenFiles maxParallelImagePulls maxPods memoryManagerPolicy memoryReservationPolicy memorySwap
    memoryThrottlingFactor mergeDefaultEvictionSettings nodeLeaseDurationSeconds nodeStatusMaxImages nodeStatusReportFrequency
    nodeStatusUpdateFrequency oomScoreAdj podCIDR podLogsDir podPidsLimit podsPerCore port preloadedImagesVerificationAllowlist
    protectKernelDefaults providerID qosReserved readOnlyPort registerNode registerWithTaints registryBurst registryPullQPS
    reservedMemory reservedSystemCPUs resolvConf rotateCertificates runOnce runtimeRequestTimeout seccompDefault
    serializeImagePulls serverTLSBootstrap showHiddenMetricsForVersion shutdownGracePeriod shutdownGracePeriodByPodPriority
    shutdownGracePeriodCriticalPods singleProcessOOMKill staticPodPath staticPodURL staticPodURLHeader
    streamingConnectionIdleTimeout syncFrequency systemCgroups systemReserved systemReservedCgroup tlsCertFile tlsCipherSuites
    tlsCurvePreferences tlsMinVersion tlsPrivateKeyFile topologyManagerPolicy topologyManagerPolicyOptions topologyManagerScope
    tracing userNamespaces volumePluginDir volumeStatsAggPeriod`,
  authentication: "anonymous webhook x509",
  authorization: "mode webhook",
  crashLoopBackOff: "maxContainerRestartPeriod",
  logging: "flushFrequency format options verbosity vmodule",
  memorySwap: "swapBehavior",
  tracing: "endpoint samplingRatePerMillion",
  userNamespaces: "idsPerPod",
});

/** The same of k8s.io/kube-proxy/config/v1alpha1. */
export const KUBE_PROXY_FIELDS: Fields = fields({
  "": `
    apiVersion bindAddress bindAddressHardFail clientConnection clusterCIDR configSyncPeriod conntrack detectLocal
    detectLocalMode enableProfiling featureGates healthzBindAddress hostnameOverride iptables ipvs kind logging
    metricsBindAddress mode nftables nodePortAddresses oomScoreAdj portRange showHiddenMetricsForVersion windowsRunAsService
    winkernel`,
  clientConnection: "acceptContentTypes burst contentType kubeconfig qps",
  conntrack: "maxPerCore min tcpBeLiberal tcpCloseWaitTimeout tcpEstablishedTimeout udpStreamTimeout udpTimeout",
  detectLocal: "bridgeInterface interfaceNamePrefix",
  iptables: "localhostNodePorts masqueradeAll masqueradeBit minSyncPeriod syncPeriod",
  ipvs: "excludeCIDRs minSyncPeriod scheduler strictARP syncPeriod tcpFinTimeout tcpTimeout udpTimeout",
  logging: "flushFrequency format options verbosity vmodule",
  nftables: "masqueradeAll masqueradeBit minSyncPeriod syncPeriod",
  winkernel: "enableDSR forwardHealthCheckVip networkName rootHnsEndpointName sourceVip",
});
